// Which characters a screen does not show, or shows in another order, as ranges (hearth/base/text.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/text.py.

export const UNSEEN = [
  [0, 31],
  [127, 159],
  [8232, 8232],
  [8233, 8233],
  [65529, 65531],
  [173, 173],
  [847, 847],
  [1564, 1564],
  [4447, 4447],
  [4448, 4448],
  [6068, 6068],
  [6069, 6069],
  [6155, 6159],
  [8203, 8207],
  [8234, 8238],
  [8288, 8303],
  [12644, 12644],
  [65024, 65039],
  [65279, 65279],
  [65440, 65440],
  [65520, 65528],
  [113824, 113827],
  [119155, 119162],
  [917504, 921599],
] as const;
