import type { Position, Problem } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { duplicateKind, noDocument, unknownKind, unknownVersion } from '../codec/document-problems.ts';
import { type FieldTree, fieldTreeOf } from '../codec/field-tree.ts';
import { readDocument } from '../codec/read-document.ts';
import { parseSource, type Source, type SourceDocument, type SourceLimits } from '../codec/source.ts';
import { readHeader } from '../kubeadm/config/document-header.ts';
import { sortProblems } from '../kubeadm/config/origins.ts';
import { QUOTE_TEMPLATE } from './fleet-problems.ts';
import { secretProblems } from './inline-secrets.ts';
import { FLEET_API_VERSION, FLEET_KIND, type FleetFile, fleetSchema } from './schema.ts';

/** A fleet file as written. When a problem is an error, it lacks what is wrong and must not be used. */
export interface LoadedFleet {
  readonly file: string;
  readonly fleet: FleetFile;
  /** Null when there is none in the file. */
  readonly document: SourceDocument | null;
  /** In the order of the file. */
  readonly problems: readonly Problem[];
}

/** Tens of thousands of hosts of a few lines each. */
export const FLEET_LIMITS: SourceLimits = {
  characters: 8 * 1024 * 1024,
  nodes: 1_000_000,
  hint: 'Check its syntax; write hosts as ranges such as edge-[001:200], and what they share in groups',
};

/**
 * Reads the text of a fleet file, as strictly as kubeadm's documents are read; all problems at once.
 * @param file its name in positions
 */
export function loadFleet(text: string, file: string): LoadedFleet {
  const source = parseSource(text, file, FLEET_LIMITS);
  const { document, problems } = selectDocument(source, text, file);
  if (document === null) return { file, fleet: {}, document: null, problems: sortProblems(problems) };
  const secrets = secretProblems(document);
  const read = readDocument(document, fleetSchema, { suggest, argumentHint });
  const isSecret = new Set(secrets.map(({ position }) => placeText(position)));
  const structure = read.problems.filter(({ position }) => !isSecret.has(placeText(position)));
  return { file, fleet: read.value, document, problems: sortProblems([...problems, ...secrets, ...structure]) };
}

function placeText(position: Position | undefined): string {
  return position === undefined ? '' : `${position.line}:${position.column}`;
}

function selectDocument(source: Source, text: string, file: string): { document: SourceDocument | null; problems: readonly Problem[] } {
  const problems = source.problems.map((problem) => withTemplateHint(problem, text));
  if (problems.length > 0) return { document: null, problems };
  const found: SourceDocument[] = [];
  for (const document of source.documents) {
    if (document.root === null) continue;
    const header = readHeader(document);
    if (!('kind' in header)) {
      problems.push(...header.map(asFleet));
      continue;
    }
    const { apiVersion, kind, kindPosition, versionPosition } = header;
    const first = found[0];
    if (kind !== FLEET_KIND) {
      const likely = closestName(kind, [FLEET_KIND]);
      problems.push(unknownKind(apiVersion, kind, kindPosition, [FLEET_KIND], likely));
    } else if (apiVersion !== FLEET_API_VERSION) problems.push(unknownVersion(apiVersion, versionPosition, [FLEET_API_VERSION]));
    else if (first !== undefined) problems.push(duplicateKind(kind, kindPosition, first.positionAt(first.root?.offset ?? 0).line));
    else found.push(document);
  }
  const [document = null] = found;
  if (document === null && problems.length === 0) problems.push(noDocument(file, [FLEET_KIND]));
  return { document, problems };
}

/** The header of kubeadm's documents is what the shared reader proposes. */
function asFleet(problem: Problem): Problem {
  if (problem.code !== 'CONFIG_MISSING_HEADER') return problem;
  return { ...problem, hint: `Begin it with ${problem.path === 'kind' ? `kind: ${FLEET_KIND}` : `apiVersion: ${FLEET_API_VERSION}`}` };
}

/** `address: {{ ip }}` is the slip everyone makes: the braces are YAML's. */
function withTemplateHint(problem: Problem, text: string): Problem {
  const { position, code } = problem;
  if (code !== 'CONFIG_SYNTAX' || position === undefined) return problem;
  const line = text.split('\n', position.line)[position.line - 1] ?? '';
  return /(?:[:-]\s+|^\s*)\{\{/.test(line) ? { ...problem, hint: QUOTE_TEMPLATE } : problem;
}

function argumentHint(name: string): string {
  return `This is a list of names and values: - {name: ${name}, value: …}`;
}

/** Another letter case, a slip of the pen, or where else the name belongs. */
function suggest(parents: readonly string[], name: string): string | undefined {
  const siblings = fieldsAt(parents);
  const near = siblings.find((known) => known.toLowerCase() === name.toLowerCase()) ?? closestName(name, siblings);
  if (near !== null) return `Did you mean ${near}?`;
  if (parents.length > 0 && SSH_FIELDS.has(name)) return `Write it under ssh: ssh.${name}`;
  if (/^(metadata|spec|status)$/.test(name)) return 'Fleet files have none: leave it out';
  return INSTEAD.get(name);
}

/** What others call things. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['vars', 'Write it as variables'],
  ['children', 'Groups are not nested: list the groups of a host, the lowest layer first'],
  ['group', 'Write a list: groups: [edge]'],
  ['identity', 'Write a list: identityFiles: [~/.ssh/id_ed25519]'],
  ['identityFile', 'Write a list: identityFiles: [~/.ssh/id_ed25519]'],
  ['ansible', 'Write it as ansibleInventory'],
  ['kubelet', 'Write it as kubeletConfiguration'],
  ['maxPods', 'Write it under kubeletConfiguration'],
]);

const SSH_FIELDS: ReadonlySet<string> = new Set(['user', 'port', 'bastion', 'become', 'transport', 'hostKeys', 'identityFiles']);

function fieldsAt(parents: readonly string[]): readonly string[] {
  let tree: FieldTree | undefined = fieldTreeOf(fleetSchema);
  for (const name of parents) tree = structOf(tree)?.fields.get(name);
  return [...(structOf(tree)?.fields.keys() ?? [])];
}

function structOf(tree: FieldTree | undefined): (FieldTree & { readonly kind: 'struct' }) | undefined {
  const inner = tree?.kind === 'list' ? tree.item : tree;
  return inner?.kind === 'struct' ? inner : undefined;
}
