"""What is known of Redis commands: which keys they name, what they change, and what their answers prove."""

from __future__ import annotations

import enum
import hashlib
import re
from dataclasses import dataclass

from .shapes import normalise
from .unit import Change

Args = list[bytes] | tuple[bytes, ...]
"""A command with its arguments, the name first."""


class Truth(enum.Enum):
    """How the answer to a command tells whether state changed."""

    NEVER = enum.auto()
    """It never does."""
    ALWAYS = enum.auto()
    """Unless the answer is an error."""
    COUNT = enum.auto()
    """When the answer is not 0, -1 or nil."""
    FOUND = enum.auto()
    """When the answer is not nil and not empty: a pop that got something."""
    SET = enum.auto()
    """`SET`: nil means that NX or XX forbade it."""
    NIL = enum.auto()
    """When the answer is not nil."""
    CLAIM = enum.auto()
    """`XAUTOCLAIM` and `XREADGROUP`: entries inside the answer."""
    SCRIPT = enum.auto()
    """A script or an unknown command: nothing but an error before its start proves that it did nothing."""


class Keys(enum.Enum):
    """Where a command names its keys."""

    NONE = enum.auto()
    FIRST = enum.auto()
    SECOND = enum.auto()
    """After a subcommand."""
    ALL = enum.auto()
    BUT_LAST = enum.auto()
    """All but a last timeout."""
    PAIRS = enum.auto()
    """Keys and values in turn."""
    NUMBERED = enum.auto()
    """A number of keys and the keys, after one argument (script, timeout, destination)."""
    COUNTED = enum.auto()
    """A number of keys and the keys."""
    STREAMS = enum.auto()
    """After the word STREAMS, as many keys as ids."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of Redis."""

    name: str
    change: Change = Change.MAYBE
    """The guess before the answer is known."""
    truth: Truth = Truth.SCRIPT
    keys: Keys = Keys.FIRST
    control: bool = False
    """Talks about the connection only."""
    group: bool = False
    """Its first argument is a subcommand."""


def _table() -> dict[bytes, Command]:
    table: dict[bytes, Command] = {}

    def add(names: str, change: Change, truth: Truth, keys: Keys = Keys.FIRST, **flags: bool) -> None:
        for name in names.split():
            table[name.encode()] = Command(name, change, truth, keys, **flags)

    no, yes, maybe = Change.NO, Change.YES, Change.MAYBE
    never, always, count, found = Truth.NEVER, Truth.ALWAYS, Truth.COUNT, Truth.FOUND
    add(
        "GET STRLEN GETRANGE SUBSTR GETBIT BITCOUNT BITPOS BITFIELD_RO LCS TYPE TTL PTTL EXPIRETIME PEXPIRETIME DUMP "
        "LLEN LRANGE LINDEX LPOS HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN HRANDFIELD HSCAN HTTL HPTTL "
        "HEXPIRETIME HPEXPIRETIME SMEMBERS SISMEMBER SMISMEMBER SCARD SRANDMEMBER SSCAN ZRANGE ZREVRANGE "
        "ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZREVRANGEBYLEX ZSCORE ZMSCORE ZCARD ZCOUNT ZLEXCOUNT ZRANK "
        "ZREVRANK ZRANDMEMBER ZSCAN XRANGE XREVRANGE XLEN XPENDING GEODIST GEOHASH GEOPOS GEOSEARCH GEORADIUS_RO "
        "GEORADIUSBYMEMBER_RO PFCOUNT SORT_RO DIGEST",
        no,
        never,
    )
    add("EXISTS TOUCH MGET SINTER SUNION SDIFF", no, never, Keys.ALL)
    add("ZDIFF ZINTER ZUNION ZINTERCARD SINTERCARD", no, never, Keys.COUNTED)
    add("EVAL_RO EVALSHA_RO FCALL_RO", no, never, Keys.NUMBERED)
    add("XREAD", no, never, Keys.STREAMS)
    add("KEYS SCAN RANDOMKEY DBSIZE TIME LASTSAVE LOLWUT ROLE WAIT WAITAOF INFO MONITOR", no, never, Keys.NONE)
    add("OBJECT XINFO MEMORY", no, never, Keys.SECOND, group=True)
    add("PUBSUB CLUSTER LATENCY SLOWLOG COMMAND", no, never, Keys.NONE, group=True)
    add("WATCH", no, never, Keys.ALL)
    add("UNWATCH MULTI DISCARD", no, never, Keys.NONE)
    add("SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE", no, never, Keys.ALL)
    add("HELLO AUTH SELECT PING ECHO RESET QUIT READONLY READWRITE ASKING", no, never, Keys.NONE, control=True)
    add("CLIENT", no, never, Keys.NONE, control=True, group=True)
    add(
        "SETEX PSETEX GETSET APPEND INCR DECR INCRBY DECRBY INCRBYFLOAT SETRANGE SETBIT BITFIELD LPUSH RPUSH LSET "
        "LTRIM HSET HMSET HINCRBY HINCRBYFLOAT HSETEX GEOADD ZINCRBY RESTORE PFMERGE RENAME ZRANGESTORE "
        "GEOSEARCHSTORE SINTERSTORE SUNIONSTORE SDIFFSTORE ZUNIONSTORE ZINTERSTORE ZDIFFSTORE SORT GETEX GEORADIUS "
        "GEORADIUSBYMEMBER HGETEX",
        yes,
        always,
    )
    add("BITOP", yes, always, Keys.SECOND)
    add("MSET", yes, always, Keys.PAIRS)
    add("FLUSHALL FLUSHDB SWAPDB MIGRATE SAVE BGSAVE SHUTDOWN REPLICAOF SLAVEOF FAILOVER", yes, always, Keys.NONE)
    add("SCRIPT FUNCTION CONFIG ACL DEBUG MODULE", yes, always, Keys.NONE, group=True)
    add("XGROUP", yes, count, Keys.SECOND, group=True)
    add(
        "SREM SADD ZREM HDEL LREM SETNX HSETNX EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST SMOVE LINSERT LPUSHX RPUSHX "
        "ZREMRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYLEX XDEL XACK XTRIM XACKDEL PUBLISH SPUBLISH RENAMENX COPY MOVE "
        "PFADD HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT HPERSIST",
        yes,
        count,
    )
    add("DEL UNLINK", yes, count, Keys.ALL)
    add("MSETNX", yes, count, Keys.PAIRS)
    add("SET", yes, Truth.SET)
    add("ZADD XADD XSETID", yes, Truth.NIL)
    add("LPOP RPOP SPOP ZPOPMIN ZPOPMAX LMOVE RPOPLPUSH BLMOVE BRPOPLPUSH GETDEL HGETDEL XCLAIM", maybe, found)
    add("BLPOP BRPOP BZPOPMIN BZPOPMAX", maybe, found, Keys.BUT_LAST)
    add("LMPOP ZMPOP", maybe, found, Keys.COUNTED)
    add("BLMPOP BZMPOP", maybe, found, Keys.NUMBERED)
    add("XREADGROUP", maybe, Truth.CLAIM, Keys.STREAMS)
    add("XAUTOCLAIM", maybe, Truth.CLAIM)
    add("EVAL EVALSHA FCALL", maybe, Truth.SCRIPT, Keys.NUMBERED)
    add("EXEC", maybe, Truth.NEVER, Keys.NONE)
    return table


COMMANDS = _table()

READING_SUBCOMMANDS = frozenset(
    b"SCRIPT EXISTS,SCRIPT LOAD,FUNCTION LIST,FUNCTION STATS,FUNCTION DUMP,FUNCTION HELP,CONFIG GET,ACL WHOAMI,"
    b"ACL LIST,ACL USERS,ACL GETUSER,ACL CAT,ACL LOG,ACL DRYRUN,ACL GENPASS,MODULE LIST,DEBUG SLEEP,DEBUG OBJECT".split(
        b","
    )
)
"""Of the groups that change state as a rule. SCRIPT LOAD fills a cache that any client may fill again."""

SUBSCRIBING = frozenset(
    b"SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE".split()  # answered out of band
)

EARLY_ERRORS = frozenset(
    [
        "NOSCRIPT",
        "READONLY",
        "NOAUTH",
        "WRONGPASS",
        "NOPERM",
        "LOADING",
        "BUSY",
        "MOVED",
        "ASK",
        "CLUSTERDOWN",
        "CROSSSLOT",
        "MASTERDOWN",
        "MISCONF",
        "OOM",
        "TRYAGAIN",
        "NOREPLICAS",
        "EXECABORT",
        "UNBLOCKED",
    ]
)
"""First words of errors that a server gives before it carries a script out."""

_UNKNOWN_NAME = re.compile(rb"[A-Z][A-Z0-9._-]{0,31}")
_WORD = re.compile(rb"[A-Za-z][A-Za-z_-]{1,23}")
_NO_COMMAND = Command("?", keys=Keys.NONE)
MOST_KEYS = 3
"""Different key templates of one command that its shape names."""


def command_of(args: Args) -> Command:
    """What is known of the command. An unknown one may change state, and its first argument is taken for a key."""
    name = args[0].upper()
    command = COMMANDS.get(name)
    if command is None:
        return Command(name.decode()) if _UNKNOWN_NAME.fullmatch(name) else _NO_COMMAND
    if command.group and len(args) > 1:
        full = name + b" " + args[1].upper()
        if not _UNKNOWN_NAME.fullmatch(args[1].upper()):
            return command
        reads = command.change is Change.NO or full in READING_SUBCOMMANDS
        change, truth = (Change.NO, Truth.NEVER) if reads else (command.change, command.truth)
        return Command(full.decode(), change, truth, command.keys, command.control)
    return command


def keys_of(command: Command, args: Args) -> list[bytes]:
    """The keys (or channels) that the command names, in its own order."""
    where = command.keys
    if where is Keys.FIRST:
        return list(args[1:2])
    if where is Keys.NONE:
        return []
    if where is Keys.SECOND:
        return list(args[2:3])
    if where is Keys.ALL:
        return list(args[1:])
    if where is Keys.BUT_LAST:
        return list(args[1:-1])
    if where is Keys.PAIRS:
        return list(args[1::2])
    if where is Keys.STREAMS:
        return _stream_keys(args)
    at = 2 if where is Keys.NUMBERED else 1
    count = int(args[at]) if len(args) > at and args[at].isdigit() and len(args[at]) < 6 else 0
    return list(args[at + 1 : at + 1 + count])


def _stream_keys(args: Args) -> list[bytes]:
    for index, word in enumerate(args):
        if word.upper() == b"STREAMS":
            rest = args[index + 1 :]
            return list(rest[: max(1, len(rest) // 2)])
    return []


def shape_of(command: Command, args: Args) -> str:
    """`ZADD unacked_index`, `DEL a,b`, `EVAL 1f0c4d dramatiq enqueue`: without the leading protocol name.

    A script is named by six characters of its SHA-1, the same for EVAL and EVALSHA, and by its first argument after
    the keys where that is a plain word.
    """
    keys = keys_of(command, args)
    templates = [normalise(key.decode("utf-8", "replace")) for key in keys[:64]]
    if len(templates) > 1:
        # Sorted, because kombu asks for its queues in a turning order.
        templates = sorted(set(templates))
        if len(templates) > MOST_KEYS:
            templates = [*templates[:MOST_KEYS], "…"]
    words = [command.name]
    if command.keys is Keys.NUMBERED and command.truth in (Truth.SCRIPT, Truth.NEVER) and len(args) > 1:
        words = ["EVAL" if command.name.startswith("EVAL") else command.name, _script_name(command, args[1])]
    if templates:
        words.append(",".join(templates))
    if len(words) > 1 and command.keys is Keys.NUMBERED and command.truth is Truth.SCRIPT:
        rest = args[3 + len(keys) : 4 + len(keys)]
        if rest and _WORD.fullmatch(rest[0]):
            words.append(rest[0].decode())
    return " ".join(words)


def _script_name(command: Command, text: bytes) -> str:
    if command.name.startswith("FCALL"):
        return normalise(text.decode("utf-8", "replace"))
    if command.name.startswith("EVALSHA"):
        return text[:6].decode("ascii", "replace").lower()
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:6]


def ttls_of(command: Command, args: Args) -> tuple[list[tuple[bytes, float]], list[tuple[bytes, float]]]:
    """Times to live that the command sets: (key, seconds from now) and (key, Unix time in seconds)."""
    name = command.name
    found: tuple[bytes, bytes] | None = None
    if name in _TTL_SECOND and len(args) > 2:
        found = (_TTL_SECOND[name], args[2])
    elif name in ("SET", "GETEX"):
        for index in range(2 if name == "GETEX" else 3, len(args) - 1):
            if (word := args[index].upper()) in (b"EX", b"PX", b"EXAT", b"PXAT"):
                found = (word, args[index + 1])
                break
    if found is None or not found[1].isdigit() or len(found[1]) > 18:
        return [], []
    unit, text = found
    pair = (args[1], int(text) / (1000 if unit.startswith(b"P") else 1))
    return ([], [pair]) if unit.endswith(b"AT") else ([pair], [])


_TTL_SECOND = {
    "SETEX": b"EX",
    "PSETEX": b"PX",
    "EXPIRE": b"EX",
    "PEXPIRE": b"PX",
    "EXPIREAT": b"EXAT",
    "PEXPIREAT": b"PXAT",
}
"""Commands whose second argument is a time to live, and its unit."""


def sets_ttl(command: Command) -> bool:
    """Whether `ttls_of` can find anything; cheap, for the hot path."""
    return command.name in _TTL_SECOND or command.name in ("SET", "GETEX")
