// A field for an account that somebody types or pastes.

interface Props {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
}

export function AccountField({ id, label, value, change }: Props) {
  return (
    <p>
      <label for={id}>{label}</label>{" "}
      <input type="text" id={id} class="mono" autocomplete="off" spellcheck={false} placeholder="0x…" value={value} onInput={(event) => change(event.currentTarget.value)} />
    </p>
  );
}
