/**
 * Functions and modules of this SQLite that compute and do nothing else. It has more: some read and write any file (`readfile`,
 * `writefile`, `fsdir`), run SQL that is not ours to see (`sha3_query`) or are old C that was never meant for strangers. Whatever
 * is not here cannot be used, also if a newer version brings it.
 */
export const safeFunctions: ReadonlySet<string> = new Set(
  `-> ->> abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat concat_ws cos cosh count
  cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format
  geopoly_area geopoly_bbox geopoly_blob geopoly_ccw geopoly_contains_point geopoly_group_bbox geopoly_json geopoly_overlap
  geopoly_regular geopoly_svg geopoly_within geopoly_xform glob group_concat hex highlight ifnull iif instr json json_array
  json_array_length json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch
  json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract jsonb_group_array
  jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday lag last_insert_rowid
  last_value lead length libsql_vector_idx like likelihood likely ln log log10 lower ltrim match max min mod nth_value ntile nullif
  octet_length percent_rank pi pow power printf quote radians random randomblob rank replace round row_number rtrim sha3 sign sin
  sinh snippet soundex sqlite_source_id sqlite_version sqrt strftime string_agg substr substring sum tan tanh time timediff total
  total_changes trim trunc typeof unhex unicode unixepoch unlikely upper uuid uuid_blob uuid_str vector vector16 vector1bit
  vector32 vector64 vector8 vector_distance_cos vector_distance_l2 vector_extract vectorb16 zeroblob
  fts5 rtree rtree_i32 geopoly json_each json_tree generate_series vector_top_k fts5vocab`.split(/\s+/),
)

export const safeModules: ReadonlySet<string> = new Set(
  `fts5 fts5vocab rtree rtree_i32 geopoly json_each json_tree generate_series vector_top_k
  pragma_table_info pragma_table_xinfo pragma_table_list pragma_index_list pragma_index_info pragma_index_xinfo
  pragma_foreign_key_list pragma_foreign_key_check`.split(/\s+/),
)
