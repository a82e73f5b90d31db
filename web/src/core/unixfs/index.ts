// UnixFS v1: files and directories to blocks and back. Mirrors hearth/storage/unixfs/.

export { exportTree, type Exported } from "./exporter";
export {
  type Child,
  type FileNode,
  type FolderNode,
  importFile,
  importTree,
  type ImportOptions,
  type TreeNode,
} from "./importer";
export { DEFAULT_LIMITS, type Entry, type Found, limitsOfMarket, type ReadLimits, type Source } from "./model";
export { checkName, disarmed } from "./names";
export { blocksOf, countEntries, declaredSize, linksOf, readFile, resolve, walk } from "./reader";
