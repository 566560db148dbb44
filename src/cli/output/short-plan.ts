import type { JsonObject } from '../../base/json.ts';
import { nameRanges } from '../../base/text/name-ranges.ts';
import { type StyledPart, styled, type Text } from '../../base/text/styled.ts';
import { subjectOfHostChange } from '../../fleet/plan/operations.ts';
import { type FieldChange, formatFieldChange, type Impact } from '../../host/plan/impact.ts';

/** Changes that share a line: they differ only in the name. `below`: further lines. */
interface SharedLine {
  readonly head: string;
  readonly names: readonly string[];
  readonly tail: string;
  readonly below: readonly Text[];
}

/**
 * The changes of a plan document in short, without contents and diffs: one line for each changed field, file and
 * object. Created files of one name with several extensions share a line, as do objects of one kind with the same
 * change. Directories are omitted if a file below them is created.
 */
export function shortLines(changes: readonly JsonObject[]): readonly Text[] {
  const shared = new Map<string, SharedLine>();
  const entries: (string | readonly Text[])[] = [];
  for (const change of changes.filter((one) => !followsFrom(one, changes))) {
    const named = namedChange(change);
    if (named === null) {
      entries.push(otherLines(change));
      continue;
    }
    const { key, name, ...line } = named;
    const same = shared.get(key);
    if (same === undefined) entries.push(key);
    const names = same?.names ?? [];
    shared.set(key, { ...line, names: names.includes(name) ? names : [...names, name] });
  }
  return entries.flatMap((entry) => (typeof entry === 'string' ? linesOfShared(shared.get(entry)) : entry));
}

function linesOfShared(line: SharedLine | undefined): readonly Text[] {
  return line === undefined ? [] : [`  ${line.head}${nameRanges(line.names).join(', ')}${line.tail}`, ...line.below];
}

/** Directories that the files below them need, and the reload of systemd after its files. */
function followsFrom({ kind, path }: JsonObject, changes: readonly JsonObject[]): boolean {
  if (kind === 'daemon-reload') return changes.some((change) => change.kind !== kind);
  if (kind !== 'make-directory') return false;
  return changes.some((other) => typeof other.path === 'string' && other.kind !== 'remove-file' && other.path.startsWith(`${path}/`));
}

const CREATED = 'does not exist';

/** A change that may share its line with others. Null: no such change. */
function namedChange(change: JsonObject): (Omit<SharedLine, 'names'> & { readonly key: string; readonly name: string }) | null {
  const { kind, path, action, reason, impact, fields } = change;
  const tail = `${reason === CREATED ? '' : `: ${reason}`}${isSafe(impact) || Array.isArray(fields) ? '' : ` (${impact})`}`;
  if ('object' in change) {
    const [object, name] = objectOf(change);
    const head = `${action === 'create' ? '+' : action === 'delete' ? '-' : '~'} ${object} `;
    const below = fields === undefined ? [] : fieldLines(fields as unknown as readonly FieldChange[] | null, '    ');
    return { head, name, tail, below, key: JSON.stringify([head, tail, fields ?? null]) };
  }
  const isCreated = action === 'create' || kind === 'put-file' || kind === 'upload-file' || kind === 'make-directory';
  if (!isCreated || typeof path !== 'string' || fields !== undefined) return null;
  if (kind === 'make-directory') return { head: '+ ', name: `${path}/`, tail, below: [], key: path };
  const size = typeof change.size === 'number' ? ` (${(change.size / 1e6).toFixed(1)} MB)` : '';
  const [, directory = '', stem = path] = /^(.*\/)([^/]*?)(?:\.[^./]*)?$/.exec(path) ?? [];
  const end = size + tail;
  return { head: `+ ${directory}`, name: path.slice(directory.length), tail: end, below: [], key: directory + stem + end };
}

function otherLines(change: JsonObject): readonly Text[] {
  const { kind, path, action, reason, impact, fields } = change;
  const sign = action === 'create' ? '+' : String(kind).startsWith('remove') || kind === 'empty-directory' ? '-' : '~';
  if (Array.isArray(fields) && fields.length > 0) {
    const access = String(reason)
      .split(', ')
      .filter((part) => part.startsWith('mode ') || part.startsWith('owner '));
    return [
      ...(action === 'create' ? [`  + ${path}`] : []),
      ...fieldLines(fields as unknown as readonly FieldChange[], '  ~ '),
      ...(access.length === 0 ? [] : [`  ~ ${path}: ${access.join(', ')}`]),
      // Fields of the command line, which no file of this plan has: the restart changes them.
      ...(path === undefined ? [`  ~ ${commandOf(change)}: ${reason}`] : []),
    ];
  }
  const isFile = kind === 'write-file' || kind === 'remove-file';
  const what = isFile ? subjectOfHostChange(change) : commandOf(change);
  return [[`  ${sign} ${what}: ${reason}`, ...(isSafe(impact) ? [] : [' (', styledImpact(impact as Impact), ')'])]];
}

/** `restart kubelet` */
function commandOf(change: JsonObject): string {
  const verb = String(change.kind)
    .replace(/-unit$/, '')
    .replaceAll('-', ' ');
  return [verb, subjectOfHostChange(change)].filter(Boolean).join(' ');
}

/** The lines of the fields that change for a running kubelet; null: the running configuration is unknown. */
function fieldLines(fields: readonly FieldChange[] | null, indentation: string): readonly Text[] {
  if (fields === null) return [`${indentation}impact unknown, because the running configuration of the kubelet cannot be read`];
  return fields.map((field) => [indentation, ...fieldText(field)]);
}

/** `maxPods: 110 → 60 (new-pods-only)`, with the reason of the impact. */
export function fieldText(field: FieldChange): readonly (string | StyledPart)[] {
  return [`${formatFieldChange(field)} (`, styledImpact(field.impact), `${field.why === undefined ? '' : `, because ${field.why}`})`];
}

/** The name of an impact; those that need attention in colour. */
export function styledImpact(impact: Impact): string | StyledPart {
  return impact === 'unsafe' ? styled('red', impact) : impact === 'drain' ? styled('yellow', impact) : impact;
}

function isSafe(impact: unknown): boolean {
  return impact === undefined || impact === null || impact === 'safe';
}

/** Kind, and name with the namespace. */
function objectOf(change: JsonObject): readonly [kind: string, name: string] {
  const object = change.object as JsonObject;
  const metadata = object.metadata as JsonObject;
  const name = String(metadata.name);
  return [String(object.kind), metadata.namespace === undefined ? name : `${metadata.namespace}/${name}`];
}
