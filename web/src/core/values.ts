// What a job file holds, before any rule has looked at it. Whole numbers are bigints, since the text may hold more than
// 53 bits; mappings keep their order.

export type Value = null | boolean | bigint | string | readonly Value[] | ValueMap;
export type ValueMap = ReadonlyMap<string, Value>;
