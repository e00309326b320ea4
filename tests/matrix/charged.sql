create table charged (order_id text not null, at timestamptz not null default now());
