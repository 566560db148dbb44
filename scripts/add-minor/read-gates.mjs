// Reads feature gates from a source tree (kubernetes/kubernetes) or from the documentation (kubernetes/website).
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';

const LIST = 'test/compatibility_lifecycle/reference/versioned_feature_list.yaml';
const CLIENT_GATES = ['staging/src/k8s.io/client-go/features/known_features.go', 'features/known_features.go'];
const KUBE_GATES = 'pkg/features/kube_features.go';
const PAGES = 'content/en/docs/reference/command-line-tools-reference/feature-gates';
/** Groups of gates; no list names them. */
export const GROUPS = ['AllAlpha', 'AllBeta'];

/**
 * The gates of the generated list of a tree at a minor.
 * @returns null if the tree has no list
 */
export function readGates(tree, minor) {
  const list = path.join(tree, LIST);
  if (!existsSync(list)) return null;
  const gates = new Map();
  for (const { name, versionedSpecs } of parse(readFileSync(list, 'utf8')))
    addGate(gates, { name: nameOfGate(tree, name), specs: versionedSpecs, minor });
  return gates;
}

/** The gates of client-go, in a tree of kubernetes/kubernetes or of kubernetes/client-go; null: neither. */
export function readClientGates(tree, minor) {
  const file = CLIENT_GATES.map((name) => path.join(tree, name)).find((name) => existsSync(name));
  if (file === undefined) return null;
  const gates = new Map();
  const text = readFileSync(file, 'utf8');
  for (const [, name, body] of text.matchAll(/^\t(\w+): \{\n((?:\t\t\{Version: [^\n]*\n)+)\t\}/gm)) {
    const specs = [...body.matchAll(/MustParse\("([^"]+)"\), Default: (\w+), PreRelease: (?:\w+\.)?(\w+)(, LockToDefault: true)?/g)];
    addGate(gates, {
      name,
      specs: specs.map(([, version, on, preRelease, lock]) => ({
        version,
        default: on === 'true',
        preRelease,
        lockToDefault: lock !== undefined,
      })),
      minor,
    });
  }
  return gates;
}

/**
 * The gates that another gate needs, by the dependent gate; empty lists for gates without needs.
 * @returns null if no tree has a source of gates
 */
export function readDependencies(trees) {
  const files = trees.map((tree) => path.join(tree, KUBE_GATES)).filter((name) => existsSync(name));
  if (files.length === 0) return null;
  const needs = new Map();
  for (const file of files) {
    const table = /FeatureGateDependencies = map\[featuregate\.Feature\]\[\]featuregate\.Feature\{\n([\s\S]*?)^\}/m.exec(
      readFileSync(file, 'utf8'),
    );
    for (const [, name, body] of (table?.[1] ?? '').matchAll(/^\t([\w.]+):\s+\{([^}]*)\}/gm)) {
      const words = body.replaceAll('featuregate.Feature(', '').match(/[\w.]+/g) ?? [];
      needs.set(nameOfConstant(name), words.map(nameOfConstant));
    }
  }
  return needs;
}

/** The states of the gates that the documentation describes; gates that it describes as removed are null. */
export function readGatePages(tree, minor) {
  const dir = path.join(tree, PAGES);
  if (!existsSync(dir)) throw new Error(`${tree}: no ${PAGES}`);
  const gates = new Map();
  for (const file of readdirSync(dir).filter((name) => name.endsWith('.md') && name !== '_index.md' && name !== 'index.md')) {
    const front = /^---\n([\s\S]*?)\n---/.exec(readFileSync(path.join(dir, file), 'utf8'))?.[1];
    const { title, stages, removed } = parse(front ?? '') ?? {};
    if (title === undefined || stages === undefined) continue;
    const last = stages.at(-1).toVersion;
    const isGone = removed === true && last !== undefined && minorOf(last) < minor;
    const specs = stages.map((stage) => ({
      version: stage.fromVersion,
      default: stage.defaultValue,
      preRelease: stage.stage === 'stable' ? 'GA' : stage.stage,
      lockToDefault: stage.locked === true,
    }));
    if (isGone) gates.set(title, null);
    else addGate(gates, { name: title, specs, minor });
  }
  return gates;
}

/** Of specs of the same version, the last one counts, as in component-base. */
function addGate(gates, { name, specs, minor }) {
  const state = specs.findLast(({ version }) => minorOf(version) <= minor);
  if (state === undefined) return;
  const { preRelease, default: on, lockToDefault } = state;
  gates.set(name, { stage: preRelease.toUpperCase(), default: on, lockToDefault });
}

function minorOf(version) {
  return Number(/^v?1\.([0-9]+)$/.exec(String(version))?.[1] ?? Number.NaN);
}

/** The list of some minors has the Go constant of a gate instead of the name that users write. */
function nameOfGate(tree, name) {
  const source = path.join(tree, KUBE_GATES);
  if (!existsSync(source)) return name;
  return constantsOf(source).get(name) ?? name;
}

const byFile = new Map();

function constantsOf(file) {
  const known = byFile.get(file);
  if (known !== undefined) return known;
  const names = new Map(
    [...readFileSync(file, 'utf8').matchAll(/^\t(\w+)\s+featuregate\.Feature = "(\w+)"/gm)].map(([, name, text]) => [name, text]),
  );
  byFile.set(file, names);
  return names;
}

function nameOfConstant(word) {
  return word.slice(word.lastIndexOf('.') + 1);
}
