// Dark or light: as the system has it, or as the reader chose.

import { useEffect, useState } from "preact/hooks";

import { WORDS } from "../words";

const KEY = "hearth.theme";
const CHOICES = ["auto", "light", "dark"] as const;
type Choice = (typeof CHOICES)[number];

function stored(): Choice {
  const found = localStorage.getItem(KEY);
  return CHOICES.find((choice) => choice === found) ?? "auto";
}

export function Theme() {
  const [choice, setChoice] = useState<Choice>(stored);
  useEffect(() => {
    document.documentElement.classList.remove("light", "dark");
    if (choice !== "auto") document.documentElement.classList.add(choice);
    localStorage.setItem(KEY, choice);
  }, [choice]);
  return (
    <label class="theme">
      {WORDS.theme.label}{" "}
      <select value={choice} onChange={(event) => setChoice(event.currentTarget.value as Choice)}>
        {CHOICES.map((one) => (
          <option key={one} value={one}>
            {WORDS.theme[one]}
          </option>
        ))}
      </select>
    </label>
  );
}
