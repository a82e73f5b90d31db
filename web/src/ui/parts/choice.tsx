// A choice of one word, with its name before it. The empty word is no choice, which has a name of its own.

interface Props {
  readonly name: string;
  readonly none: string;
  readonly words: readonly string[];
  readonly value: string;
  readonly pick: (word: string) => void;
}

export const Choice = ({ name, none, words, value, pick }: Props) => (
  <label>
    {name}{" "}
    <select value={value} onChange={(event) => pick(event.currentTarget.value)}>
      {["", ...words].map((word) => (
        <option key={word} value={word}>
          {word === "" ? none : word}
        </option>
      ))}
    </select>
  </label>
);
