// What streams want of Node.

export default {
  env: {},
  nextTick: (act, ...given) => queueMicrotask(() => act(...given)),
};
