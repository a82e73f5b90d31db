// A button whose work takes a while. One that is disabled meanwhile would lose the keyboard's place on the page.

import type { ComponentChildren } from "preact";

interface Props {
  readonly id?: string;
  readonly title?: string;
  // Its work, or work beside it, is under way: it stays where it is and does nothing.
  readonly busy: boolean;
  // It can do nothing now.
  readonly disabled?: boolean;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
}

export function Button({ busy, onClick, children, ...rest }: Props) {
  return (
    <button type="button" aria-disabled={busy} onClick={() => !busy && onClick()} {...rest}>
      {children}
    </button>
  );
}
