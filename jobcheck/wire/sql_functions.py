"""Which SQL functions are known to change nothing. Every other one may: a user's own function may do anything.

The names are PostgreSQL's own (immutable and stable ones, aggregates and harmless volatile ones of 15 to 18) and those
of widespread extensions.
"""

from __future__ import annotations

_NAMES = """
abbrev abs acldefault aclexplode acos acosd acosh age akeys any_value area armor array_agg array_append array_cat
array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend array_remove
array_replace array_reverse array_sample array_shuffle array_sort array_to_json array_to_string array_to_tsvector
array_upper ascii asin asind asinh atan atan2 atan2d atand atanh avals avg bit bit_and bit_count bit_length bit_or
bit_xor bool bool_and bool_or box bpchar broadcast btrim cardinality casefold cash_words cbrt ceil ceiling center
char char_length character_length chr cidr circle clock_timestamp col_description concat concat_ws convert
convert_from convert_to corr cos cosd cosh cosine_distance cot cotd count covar_pop covar_samp crc32 crc32c crosstab
crypt cume_dist current_database current_query current_schema current_schemas current_setting current_user currval
database_to_xml database_to_xml_and_xmlschema database_to_xmlschema date date_add date_bin date_part date_subtract
date_trunc datemultirange daterange dearmor decode decrypt degrees dense_rank diagonal diameter digest div
dmetaphone dround dtrunc each encode encrypt enum_first enum_last enum_range enum_send erf erfc every exp extract
factorial family first first_value float4 float8 floor format format_type gamma gcd gen_random_bytes gen_random_uuid
gen_salt generate_series generate_subscripts get_bit get_byte get_current_ts_config getdatabaseencoding
getpgusername hash_numeric hashint4 hashint8 hashtext hashtextextended height hmac host hostmask hstore
hstore_to_json hstore_to_jsonb inet_client_addr inet_client_port inet_server_addr inet_server_port initcap
inner_product int2 int4 int4multirange int4range int8 int8multirange int8range interval is_normalized isempty
isfinite json_agg json_agg_strict json_array json_array_elements json_array_elements_text json_array_length
json_arrayagg json_build_array json_build_object json_each json_each_text json_exists json_object json_object_agg
json_object_agg_strict json_object_agg_unique json_object_keys json_objectagg json_populate_record
json_populate_recordset json_query json_scalar json_serialize json_strip_nulls json_table json_to_record
json_to_recordset json_to_tsvector json_typeof json_value jsonb_agg jsonb_agg_strict jsonb_array_elements
jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
jsonb_insert jsonb_object jsonb_object_agg jsonb_object_agg_strict jsonb_object_keys jsonb_path_exists
jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query jsonb_path_query_array
jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record
jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset
jsonb_to_tsvector jsonb_typeof justify_days justify_hours justify_interval l2_distance lag last last_value lastval
lcm lead left length levenshtein lgamma like_escape line ln log log10 lower lower_inc lower_inf lpad lseg ltrim
macaddr macaddr8 macaddr8_set7bit make_date make_interval make_time make_timestamp make_timestamptz makeaclitem max
md5 metaphone min min_scale mod mode money multirange mxid_age name nameconcatoid netmask network nlevel normalize
now npoints nth_value ntile num_nonnulls num_nulls numeric nummultirange numnode numrange obj_description
octet_length oid oidvectortypes overlaps overlay parse_ident path percent_rank percentile_cont percentile_disc
pg_available_extensions pg_backend_pid pg_basetype pg_blocking_pids pg_char_to_encoding pg_client_encoding
pg_collation_for pg_collation_is_visible pg_column_compression pg_column_is_updatable pg_column_size
pg_conf_load_time pg_conversion_is_visible pg_current_snapshot pg_current_wal_lsn pg_current_xact_id
pg_current_xact_id_if_assigned pg_cursor pg_database_size pg_describe_object pg_encoding_max_length
pg_encoding_to_char pg_function_is_visible pg_has_role pg_identify_object pg_identify_object_as_address
pg_index_column_has_property pg_index_has_property pg_indexam_has_property pg_indexes_size pg_input_error_info
pg_input_is_valid pg_is_in_recovery pg_is_other_temp_schema pg_jit_available pg_last_wal_receive_lsn
pg_last_wal_replay_lsn pg_listening_channels pg_lock_status pg_mcv_list_items pg_my_temp_schema
pg_notification_queue_usage pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible pg_options_to_table
pg_partition_ancestors pg_partition_root pg_partition_tree pg_postmaster_start_time pg_prepared_statement
pg_relation_filenode pg_relation_filepath pg_relation_is_publishable pg_relation_is_updatable pg_relation_size
pg_sequence_last_value pg_sequence_parameters pg_settings_get_flags pg_show_all_settings pg_size_bytes
pg_size_pretty pg_sleep pg_sleep_for pg_sleep_until pg_snapshot_xip pg_snapshot_xmax pg_snapshot_xmin
pg_statistics_obj_is_visible pg_table_is_visible pg_table_size pg_timezone_abbrevs pg_timezone_names
pg_total_relation_size pg_trigger_depth pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible
pg_ts_template_is_visible pg_type_is_visible pg_typeof pg_visible_in_snapshot pg_wal_lsn_diff pg_walfile_name
pg_walfile_name_offset pg_xact_status pgp_sym_decrypt pgp_sym_encrypt phraseto_tsquery pi plainto_tsquery point
polygon position pow power querytree quote_ident quote_literal quote_nullable radians radius random random_normal
range_agg range_intersect_agg range_merge rank regclass regexp_count regexp_instr regexp_like regexp_match
regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right round
row_number row_security_active row_to_json rpad rtrim scale schema_to_xml schema_to_xml_and_xmlschema
schema_to_xmlschema session_user set_bit set_byte set_config set_masklen setweight sha224 sha256 sha384 sha512
shobj_description show_trgm sign similar_escape similar_to_escape similarity sin sind sinh skeys slope soundex
split_part sqrt starts_with statement_timestamp stddev stddev_pop stddev_samp strict_word_similarity string_agg
string_to_array string_to_table strip strpos subltree subpath substr substring sum svals system_user table_to_xml
table_to_xml_and_xmlschema table_to_xmlschema tan tand tanh text textlen time time_bucket timeofday timestamp
timestamptz timetz timezone to_ascii to_bin to_char to_date to_hex to_json to_jsonb to_number to_oct to_regclass
to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regrole to_regtype
to_timestamp to_tsquery to_tsvector transaction_timestamp translate trim_array trim_scale trunc ts_debug ts_delete
ts_filter ts_headline ts_lexize ts_parse ts_rank ts_rank_cd ts_rewrite ts_stat ts_token_type tsmultirange
tsquery_phrase tsrange tstzmultirange tstzrange tsvector_to_array txid_current txid_current_if_assigned
txid_current_snapshot txid_snapshot_xip txid_snapshot_xmax txid_snapshot_xmin txid_status txid_visible_in_snapshot
unaccent unicode_version unistr unnest upper upper_inc upper_inf uuid_extract_timestamp uuid_extract_version
uuid_generate_v1 uuid_generate_v1mc uuid_generate_v3 uuid_generate_v4 uuid_generate_v5 uuid_nil uuidv4 uuidv7
var_pop var_samp varbit varchar variance version websearch_to_tsquery width width_bucket word_similarity xid xml
xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document xmlagg xmlcomment xmlexists xmltext
xmlvalidate xpath xpath_exists
"""

_PURE = frozenset(_NAMES.split())

_PURE_PREFIXES = (
    "has_",
    "pg_get_",
    "pg_stat_get_",
    "pg_ls_",
    "st_",  # PostGIS
)

_TRANSACTION_LOCKS = frozenset(
    (
        "pg_advisory_xact_lock",
        "pg_advisory_xact_lock_shared",
        "pg_try_advisory_xact_lock",
        "pg_try_advisory_xact_lock_shared",
    )
)
"""Gone with their transaction, so they leave no state behind; nor does `SELECT ... FOR UPDATE`."""

_LASTING = frozenset(
    (
        "pg_advisory_lock",
        "pg_advisory_lock_shared",
        "pg_try_advisory_lock",
        "pg_try_advisory_lock_shared",
        "pg_advisory_unlock",
        "pg_advisory_unlock_shared",
        "pg_advisory_unlock_all",
        "pg_cancel_backend",
        "pg_terminate_backend",
        "dblink",
        "dblink_exec",
        "dblink_send_query",
    )
)
"""Take effect at once, also inside a transaction, and a rollback does not undo them."""

_BUILTIN_CHANGES = frozenset(
    (
        "nextval",
        "setval",
        "pg_notify",
        "setseed",
        "pg_reload_conf",
        "pg_switch_wal",
        "lo_create",
        "lo_creat",
        "lo_unlink",
        "lo_put",
        "lo_from_bytea",
        "lo_import",
        "lowrite",
        "lo_truncate",
    )
)


def is_pure(name: str, schema: str = "") -> bool:
    """The function (lower case, as the parser gives it) changes nothing and takes no lock."""
    if schema not in ("", "pg_catalog"):
        return False
    return name in _PURE or name.startswith(_PURE_PREFIXES)


def is_transaction_lock(name: str) -> bool:
    """It takes a lock that ends with the transaction."""
    return name in _TRANSACTION_LOCKS


def is_lasting(name: str) -> bool:
    """It takes effect at once, and no rollback undoes it."""
    return name in _LASTING


def is_known_change(name: str) -> bool:
    """A function of PostgreSQL's own that changes state for certain, not just perhaps."""
    return name in _LASTING or name in _BUILTIN_CHANGES
