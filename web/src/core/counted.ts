// So many of something, in words: "1 unit", "2 units".

export const counted = (count: number | bigint, one: string, many = `${one}s`): string =>
  `${count} ${String(count) === "1" ? one : many}`;
