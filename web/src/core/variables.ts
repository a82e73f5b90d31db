// Replace `${NAME}` in the texts of a job file by the values of variables; `$${` stands for a literal `${`. A value
// that came in is text, and is not searched again. Mirrors `_substitute` of hearth/jobfile/text.py.

import { compareText } from "./unicode";
import { type Location, type Problem, problem, type Source } from "./problems";
import type { Value } from "./values";

const VARIABLE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{[^}]*\}?/g;

// The value with its variables filled in. Throws MISSING_VAR and UNUSED_VAR, all of them at once.
export function substitute(value: Value, source: Source, variables: ReadonlyMap<string, string>): Value {
  const problems: Problem[] = [];
  const used = new Set<string>();

  const fill = (text: string, where: Location): string =>
    text.replace(VARIABLE, (found: string, name: string | undefined) => {
      if (found === "$${") return "${";
      if (name === undefined) {
        const hint = "write $${ to leave it to the job";
        problems.push(problem(where, `"${found}" names no variable`, hint, "MISSING_VAR"));
        return "";
      }
      const given = variables.get(name);
      if (given === undefined) {
        const hint = `pass --var ${name}=..., or write $\${${name}} to leave it to the job`;
        problems.push(problem(where, `\${${name}} has no value`, hint, "MISSING_VAR"));
        return "";
      }
      used.add(name);
      return given;
    });

  // As deep as a job file is nested, which its reader bounds.
  const walk = (node: Value, where: Location): Value => {
    if (typeof node === "string") return fill(node, where);
    if (node instanceof Map) {
      return new Map([...node].map(([key, item]) => [key, walk(item, [...where, key])] as const));
    }
    if (Array.isArray(node)) return node.map((item: Value, index) => walk(item, [...where, index]));
    return node;
  };

  const filled = walk(value, []);
  for (const name of [...variables.keys()].filter((one) => !used.has(one)).sort(compareText)) {
    const hint = `write \${${name}} where its value goes`;
    problems.push(problem([], `does not use the variable ${name}`, hint, "UNUSED_VAR"));
  }
  if (problems.length > 0) throw source.refuse(problems);
  return filled;
}
