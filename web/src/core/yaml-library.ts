// What is used of the `yaml` package, so that the rest of it is left out of what a reader loads.

export { Composer, isAlias, isMap, isScalar, isSeq, Parser } from "yaml";
