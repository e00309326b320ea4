"""The tap: a proxy in front of each upstream of one worker, that knows the protocol and can hold any message."""
