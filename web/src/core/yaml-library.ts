// What is used of the `yaml` package, so that the rest of it is left out of what a reader loads.

export { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from "yaml";
