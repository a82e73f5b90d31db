// Files by their CIDs: name them, put them into the store of `hearth web`, and get what a CID names, checked block by
// block on this machine.

import { useState } from "preact/hooks";

import { counted } from "../../core/counted";
import { parseUri } from "../../core/cid";
import { type Entry, type Found, limitsOfMarket, readFile, resolve, walk } from "../../core/unixfs";
import { Blocks } from "../../data/blocks";
import { fromDrop, fromInput, type Picked } from "../../data/picked-files";
import { rulesOf } from "../../data/rules";
import { save } from "../../data/save";
import { carOf, nameTree, type Progress, putTree } from "../../data/upload";
import { sharedOrigin } from "../../data/origin";
import type { Context } from "../context";
import { Failure } from "../parts/failure";
import { Stranger } from "../parts/values";
import { Table } from "../parts/table";

// What is listed of a stranger's folder, and how much of one file is held in memory to be saved.
const MAX_BYTES = 1n << 31n;
const MAX_ENTRIES = 2_000;

export function Files({ context }: { readonly context: Context }) {
  return (
    <>
      <h1>Files</h1>
      <Put context={context} />
      <Get context={context} />
    </>
  );
}

type Work =
  | { readonly state: "idle" }
  | { readonly state: "busy"; readonly what: string; readonly progress: Progress }
  | { readonly state: "named"; readonly entry: Entry; readonly left: readonly string[]; readonly kept: boolean }
  | { readonly state: "failed"; readonly error: unknown };

function Put({ context }: { readonly context: Context }) {
  const [picked, setPicked] = useState<Picked>();
  const [work, setWork] = useState<Work>({ state: "idle" });
  const [over, setOver] = useState(false);
  const { opened } = context;
  const writable = opened.by === "hearth web" && opened.local.writable && !sharedOrigin(location);

  const run = async (what: string, tree: Picked, put: boolean): Promise<void> => {
    setWork({ state: "busy", what, progress: { bytes: 0, blocks: 0 } });
    try {
      const tell = (progress: Progress): void => setWork({ state: "busy", what, progress });
      const { ignore, left } = await rulesOf(tree, true);
      const entry = await (put ? putTree : nameTree)(tree.node, ignore, tell);
      setWork({ state: "named", entry, left, kept: put });
    } catch (error) {
      setWork({ state: "failed", error });
    }
  };
  const saveCar = async (tree: Picked, entry: Entry): Promise<void> => {
    try {
      const { ignore } = await rulesOf(tree, true);
      save(await carOf(tree.node, ignore, entry.cid), `${tree.name}.car`, "application/vnd.ipld.car");
    } catch (error) {
      setWork({ state: "failed", error });
    }
  };
  const take = (pick: () => Picked): void => {
    try {
      const tree = pick();
      setPicked(tree);
      void run("naming", tree, false);
    } catch (error) {
      setWork({ state: "failed", error });
    }
  };

  return (
    <section aria-labelledby="put">
      <h2 id="put">Name files, and put them into your store</h2>
      <div
        class={over ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          const items = [...(event.dataTransfer?.items ?? [])];
          const entries = items.map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
          take(() => fromDrop(entries));
        }}
      >
        <p>Drop a file or a folder here, or pick one:</p>
        <p class="row">
          <label>
            Files <input type="file" multiple onChange={(event) => pickedFrom(event.currentTarget, take)} />
          </label>
          <label>
            Folder{" "}
            <input type="file" {...{ webkitdirectory: true }} onChange={(event) => pickedFrom(event.currentTarget, take)} />
          </label>
        </p>
        <p class="soft">Everything that is put into a store under a CID is public to whoever learns that CID.</p>
      </div>
      <div aria-live="polite">
        {work.state === "busy" && (
          <p>
            {work.what} <Stranger text={picked?.name ?? ""} />: {work.progress.blocks} blocks, {work.progress.bytes} bytes
          </p>
        )}
        {work.state === "failed" && <Failure error={work.error} />}
        {work.state === "named" && picked !== undefined && (
          <>
            <dl>
              <dt>Name</dt>
              <dd><Stranger text={picked.name} /></dd>
              <dt>CID</dt>
              <dd class="mono" id="named-cid">{String(work.entry.cid)}</dd>
              <dt>Holds</dt>
              <dd>{`${counted(work.entry.files, "file")} in ${counted(work.entry.folders, "folder")}, ${counted(work.entry.size, "byte")}`}</dd>
            </dl>
            <Left paths={work.left} />
            {!picked.emptyFolders && <p class="soft">A picked folder comes without its empty folders: drop it to keep them.</p>}
            {work.kept ? (
              <p class="good">It is in your store, and kept: ipfs://{String(work.entry.cid)}</p>
            ) : (
              <>
              <p class="row">
                <button type="button" disabled={!writable} onClick={() => void run("putting", picked, true)}>
                  Put into my store
                </button>
                <button type="button" onClick={() => void saveCar(picked, work.entry)}>
                  Save as CAR
                </button>
              </p>
              {!writable && (
                <p class="soft">
                  This page may put nothing into a store: run <code>hearth web</code> and open the address that it prints, or save the
                  CAR file and run <code>hearth store import FILE</code>.
                </p>
              )}
              </>
            )}
          </>
        )}
      </div>
    </section>
  );
}

function Left({ paths }: { readonly paths: readonly string[] }) {
  if (paths.length === 0) return null;
  return (
    <details>
      <summary>{`${paths.length} left out by the rules of .gitignore, .hearthignore and the standing ones`}</summary>
      <ul>
        {paths.slice(0, 200).map((path) => (
          <li key={path}>
            <Stranger text={path} most={500} />
          </li>
        ))}
      </ul>
    </details>
  );
}

function pickedFrom(input: HTMLInputElement, take: (pick: () => Picked) => void): void {
  const files = [...(input.files ?? [])];
  if (files.length > 0) take(() => fromInput(files));
}

type Look =
  | { readonly state: "idle" }
  | { readonly state: "busy" }
  | { readonly state: "listed"; readonly found: readonly Found[]; readonly blocks: Blocks }
  | { readonly state: "failed"; readonly error: unknown };

function Get({ context }: { readonly context: Context }) {
  const [text, setText] = useState("");
  const [look, setLook] = useState<Look>({ state: "idle" });
  const [said, setSaid] = useState<string>("");

  const list = async (): Promise<void> => {
    setLook({ state: "busy" });
    setSaid("");
    try {
      const { cid, path } = parseUri(text.trim());
      const blocks = new Blocks(context.opened, context.network?.gateways ?? []);
      const root = await resolve(cid, path, blocks.source);
      const found: Found[] = [];
      for await (const one of walk(root, blocks.source, limitsOfMarket(MAX_BYTES, MAX_ENTRIES))) found.push(one);
      setLook({ state: "listed", found, blocks });
    } catch (error) {
      setLook({ state: "failed", error });
    }
  };
  const keep = async (one: Found, blocks: Blocks): Promise<void> => {
    try {
      const parts: BlobPart[] = [];
      for await (const part of readFile(one.cid, blocks.source, limitsOfMarket(MAX_BYTES, 1))) parts.push(part);
      save(parts, one.path.split("/").at(-1) || String(one.cid));
      setSaid(`saved ${one.path || String(one.cid)}: every block of it was checked`);
    } catch (error) {
      setLook({ state: "failed", error });
    }
  };

  return (
    <section aria-labelledby="get">
      <h2 id="get">Get what a CID names</h2>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void list();
        }}
      >
        <label for="cid">CID, or ipfs://CID/path</label>
        <input id="cid" type="text" class="mono" value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        <button type="submit" disabled={look.state === "busy" || text.trim() === ""}>
          Look
        </button>
      </form>
      <div aria-live="polite">
        {look.state === "busy" && <p>asking for its blocks…</p>}
        {look.state === "failed" && <Failure error={look.error} />}
        {said !== "" && <p class="good">{said}</p>}
      </div>
      {look.state === "listed" && (
        <>
          <Table
            caption={`${look.found.length} entries, as their blocks say`}
            columns={[
              { head: "path", cell: (one: Found) => <Stranger text={one.path === "" ? "(the whole)" : one.path} most={500} /> },
              { head: "kind", cell: (one) => one.kind },
              { head: "bytes", cell: (one) => (one.kind === "file" ? String(one.size) : ""), number: true },
              {
                head: "",
                cell: (one) =>
                  one.kind === "file" && (
                    <button type="button" onClick={() => void keep(one, look.blocks)}>
                      {`Save ${one.path.split("/").at(-1)?.slice(0, 40) || "it"}`}
                    </button>
                  ),
              },
            ]}
            rows={look.found}
            keyOf={(one) => one.path}
            none="Nothing is there."
          />
          <Givers blocks={look.blocks} />
        </>
      )}
    </section>
  );
}

function Givers({ blocks }: { readonly blocks: Blocks }) {
  return (
    <p class="soft">
      {blocks.givers
        .map((one) => `${one.name}: ${counted(one.blocks, "block")}${one.lastFault === "" ? "" : `, last fault ${one.lastFault}`}`)
        .join("; ")}
    </p>
  );
}

