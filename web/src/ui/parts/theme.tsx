// Dark or light: as the system has it, or as the reader chose.

import { useEffect, useLayoutEffect, useState } from "preact/hooks";

import { recall, remember } from "../../data/remember";
import { TEXTS } from "../texts";

const KEY = "theme";
const CHOICES = ["auto", "light", "dark"] as const;
type Choice = (typeof CHOICES)[number];

function stored(): Choice {
  const found = recall(KEY);
  return CHOICES.find((choice) => choice === found) ?? "auto";
}

export function Theme() {
  const [choice, setChoice] = useState<Choice>(stored);
  useLayoutEffect(() => {
    document.documentElement.classList.remove("light", "dark");
    if (choice !== "auto") document.documentElement.classList.add(choice);
  }, [choice]);
  useEffect(() => {
    // Another tab chose, or what was kept is forgotten.
    const changed = (): void => setChoice(stored());
    addEventListener("storage", changed);
    return () => removeEventListener("storage", changed);
  }, []);
  const choose = (chosen: Choice): void => {
    remember(KEY, chosen === "auto" ? null : chosen);
    setChoice(chosen);
  };
  return (
    <label class="theme">
      {TEXTS.theme.label}{" "}
      <select value={choice} onChange={(event) => choose(event.currentTarget.value as Choice)}>
        {CHOICES.map((one) => (
          <option key={one} value={one}>
            {TEXTS.theme[one]}
          </option>
        ))}
      </select>
    </label>
  );
}
