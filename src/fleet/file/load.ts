import type { Position, Problem } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import { duplicateKind, noDocument, unknownKind, unknownVersion } from '../../codec/document-problems.ts';
import { type FieldTree, fieldTreeOf } from '../../codec/field-tree.ts';
import { readDocument } from '../../codec/read-document.ts';
import { parseSource, type Source, type SourceDocument, type SourceLimits } from '../../codec/source.ts';
import { readHeader } from '../../kubeadm/config/document-header.ts';
import { sortProblems } from '../../kubeadm/config/origins.ts';
import { ROLLOUT_KIND, rolloutSettings } from '../../maintenance/gates/rollout-settings.ts';
import { QUOTE_TEMPLATE } from './fleet-problems.ts';
import { secretProblems } from './inline-secrets.ts';
import { FLEET_API_VERSION, FLEET_KIND, type FleetFile, fleetSchema } from './schema.ts';

/**
 * A fleet file as written. With an error among the problems, invalid parts are missing and the result must
 * not be used.
 */
export interface LoadedFleet {
  readonly file: string;
  readonly fleet: FleetFile;
  readonly document: SourceDocument | null;
  readonly problems: readonly Problem[];
}

/** Enough for tens of thousands of hosts with a few lines each. */
const FLEET_LIMITS: SourceLimits = {
  characters: 8 * 1024 * 1024,
  nodes: 1_000_000,
  hint: 'Declare hosts with ranges such as edge-[001:200], and shared settings in groups',
};

/**
 * Parses a fleet file as strictly as kubeadm documents and reports all problems at once.
 * @param file name in positions
 */
export function loadFleet(text: string, file: string): LoadedFleet {
  const source = parseSource(text, file, FLEET_LIMITS);
  const { document, problems } = selectDocument(source, text, file, FLEET_KIND);
  if (document === null) return { file, fleet: {}, document: null, problems: sortProblems(problems) };
  const secrets = secretProblems(document);
  const read = readDocument(document, fleetSchema, { suggest, argumentHint });
  const isSecret = new Set(secrets.map(({ position }) => placeText(position)));
  const structure = read.problems.filter(({ position }) => !isSecret.has(placeText(position)));
  return { file, fleet: read.value, document, problems: sortProblems([...problems, ...secrets, ...structure]) };
}

/**
 * Parses a file of `--gates` and reports all problems at once. With an error among the problems, the settings must not be used.
 * @param file name in positions
 */
export function loadRollout(text: string, file: string) {
  const source = parseSource(text, file, FLEET_LIMITS);
  const { document, problems } = selectDocument(source, text, file, ROLLOUT_KIND);
  if (document === null) return { settings: {}, document, problems: sortProblems(problems) };
  const read = readDocument(document, rolloutSettings, {
    suggest: (parents, name) => suggest(['rollout', ...parents], name),
    argumentHint,
  });
  return { settings: read.value, document, problems: sortProblems([...problems, ...secretProblems(document), ...read.problems]) };
}

function placeText(position: Position | undefined): string {
  return position === undefined ? '' : `${position.line}:${position.column}`;
}

function selectDocument(
  source: Source,
  text: string,
  file: string,
  expected: string,
): { document: SourceDocument | null; problems: readonly Problem[] } {
  const problems = source.problems.map((problem) => withSyntaxHint(problem, text));
  if (problems.length > 0) return { document: null, problems };
  const found: SourceDocument[] = [];
  for (const document of source.documents) {
    if (document.root === null) continue;
    const header = readHeader(document);
    if (!('kind' in header)) {
      problems.push(...header.map((problem) => withHeaderHint(problem, expected)));
      continue;
    }
    const { apiVersion, kind, kindPosition, versionPosition } = header;
    const first = found[0];
    if (kind !== expected) {
      const likely = closestName(kind, [expected]);
      problems.push(unknownKind(apiVersion, kind, kindPosition, [expected], likely));
    } else if (apiVersion !== FLEET_API_VERSION) problems.push(unknownVersion(apiVersion, versionPosition, [FLEET_API_VERSION]));
    else if (first !== undefined) problems.push(duplicateKind(kind, kindPosition, first.positionAt(first.root?.offset ?? 0).line));
    else found.push(document);
  }
  const [document = null] = found;
  if (document === null && problems.length === 0) problems.push(noDocument(file, [expected]));
  return { document, problems };
}

function withHeaderHint(problem: Problem, expected: string): Problem {
  if (problem.code !== 'CONFIG_MISSING_HEADER') return problem;
  return {
    ...problem,
    hint: `Begin the file with ${problem.path === 'kind' ? `kind: ${expected}` : `apiVersion: ${FLEET_API_VERSION}`}`,
  };
}

/** Adds a hint for a common mistake: `address: {{ ip }}`, whose braces YAML reads as an object. */
function withSyntaxHint(problem: Problem, text: string): Problem {
  const { position, code } = problem;
  if (code !== 'CONFIG_SYNTAX' || position === undefined) return problem;
  const line = text.split('\n', position.line)[position.line - 1] ?? '';
  return /(?:[:-]\s+|^\s*)\{\{/.test(line) ? { ...problem, hint: QUOTE_TEMPLATE } : problem;
}

function argumentHint(name: string): string {
  return `Write a list of names and values: - {name: ${name}, value: …}`;
}

/** Suggests a name with other letter case, a similar name, or another place for the name. */
function suggest(parents: readonly string[], name: string): string | undefined {
  const siblings = fieldsAt(parents);
  const near = siblings.find((known) => known.toLowerCase() === name.toLowerCase()) ?? closestName(name, siblings);
  if (near !== null) return `Did you mean ${near}?`;
  if (parents.length > 0 && SSH_FIELDS.has(name)) return `Move ${name} to ssh.${name}`;
  if (/^(metadata|spec|status)$/.test(name)) return 'Remove the field: fleet files have no such field';
  return INSTEAD.get(name);
}

/** Names used by other tools. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['vars', 'Rename the field to variables'],
  ['children', 'Groups cannot contain groups. List all groups of a host under groups; settings of later groups win'],
  ['group', 'Use a list: groups: [edge]'],
  ['identity', 'Use a list: identityFiles: [~/.ssh/id_ed25519]'],
  ['identityFile', 'Use a list: identityFiles: [~/.ssh/id_ed25519]'],
  ['ansible', 'Rename the field to ansibleInventory'],
  ['kubelet', 'Rename the field to kubeletConfiguration'],
  ['maxPods', 'Move the field into kubeletConfiguration'],
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
