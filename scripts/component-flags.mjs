#!/usr/bin/env node
// Writes src/kubeadm/data/component-flags.json: the flags of the components of a control plane by version
// (docs/adding-a-minor.md). It runs programs only with --help, and fetches and builds nothing.
//
//   node scripts/component-flags.mjs kubernetes 1.36 --tree DIR --binaries DIR
//   node scripts/component-flags.mjs kubernetes 1.35 --tree DIR --like DIR
//   node scripts/component-flags.mjs kubernetes 1.21 --tree DIR --binaries DIR
//   node scripts/component-flags.mjs etcd 3.6 --tree DIR
//
// --tree      a checkout of kubernetes/kubernetes, or of etcd-io/etcd
// --binaries  the programs of this version: their help lists the flags, and they accept or reject names and values.
//             The help does not list hidden and deprecated flags: the tree has their names
// --like      without programs: the tree of a version that the data have. A flag whose name only one of the trees contains
//             is printed, and belongs to that version
// --data FILE writes another file
//
// A version that is not next to those of the data (1.21) only adds the flags that they no longer have.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

const DATA = path.join(import.meta.dirname, '..', 'src', 'kubeadm', 'data', 'component-flags.json');
const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const STAGING = ['apiserver', 'component-base', 'controller-manager', 'cloud-provider', 'kube-aggregator', 'apiextensions-apiserver'];
/** Folders of a Kubernetes tree that register flags of the components. */
const SOURCES = [
  ...COMPONENTS.map((name) => `cmd/${name}`),
  'pkg',
  ...STAGING.map((name) => `staging/src/k8s.io/${name}`),
  // Of a checkout with these packages as dependencies.
  ...STAGING.map((name) => `vendor/k8s.io/${name}`),
  'vendor/k8s.io/klog/v2',
];
/** Flags that only OpenShift's trees have, and those that end the program. */
const EXCLUDED = new Set([
  'help',
  'openshift-config',
  'send-retry-after-while-not-ready-once',
  'unsupported-kube-api-over-localhost',
  'version',
]);
const VALUES = ['1s', 'true', '-7', '7', '1.5', '127.0.0.1', '7,8', '1Ki', '7-9'];
/** The values that a flag of each type accepts; `string` accepts all, and `other` is every other combination. */
const TYPES = new Map([
  ['1s', 'duration'],
  ['true', 'bool'],
  ['-7 7', 'int'],
  ['7', 'uint'],
  ['-7 7 1.5', 'float'],
  ['127.0.0.1', 'ip'],
]);
const GO_TYPES = { Bool: 'bool', Duration: 'duration', Float64: 'float', Int: 'int', Int64: 'int', Uint: 'uint', Uint64: 'uint' };

try {
  main();
} catch (error) {
  console.error(`component-flags: ${error.message}`);
  process.exit(1);
}

function main() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(['tree', 'binaries', 'like', 'data'].map((name) => [name, { type: 'string' }])),
  });
  const [product, version = ''] = positionals;
  const minor = Number(/^[13]\.(\d+)$/.exec(version)?.[1]);
  if (!Number.isInteger(minor) || values.tree === undefined)
    throw new Error('usage: component-flags.mjs kubernetes|etcd VERSION --tree DIR');
  const file = values.data ?? DATA;
  const known = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  if (product === 'etcd') known.etcd = withMinor(known.etcd, minor, readEtcd(values.tree));
  else if (values.binaries !== undefined) readBinaries(known, minor, values);
  else compareTrees(known, minor, values);
  writeFileSync(file, format(known));
}

/** The flags of programs: those of their help, and those that the tree hides from it and the program accepts. */
function readBinaries(known, minor, { tree, binaries }) {
  const names = namesIn(tree, /\bMark(?:Hidden|Deprecated)\(\s*"([a-z0-9-]+)"/g);
  for (const component of COMPONENTS) {
    const program = path.join(binaries, component);
    if (!existsSync(program)) {
      console.log(`${component}: no program in ${binaries}`);
      continue;
    }
    const listed = run(program, '--help');
    const all = new Set([...listed.matchAll(/^ +(?:-\w, )?--([a-z0-9_-]+)/gm)].map((match) => match[1].replaceAll('_', '-')));
    for (const name of names) if (!isUnknown(run(program, `--${name}=?`, '--help'))) all.add(name);
    const isOld = isFormer(known[component], minor);
    const isNew = (name) => !EXCLUDED.has(name) && !(isOld && known[component].flags.some(({ flag }) => flag === name));
    const flags = [...all].filter(isNew).map((flag) => (isOld ? { flag, type: 'other' } : describe(program, flag, listed)));
    known[component] = withMinor(known[component], minor, flags);
  }
}

function describe(program, flag, listed) {
  const answer = (value) => run(program, `--${flag}=${value}`, '--help');
  const isAccepted = (text) => !text.includes('invalid argument');
  const first = answer('?');
  const answers = isAccepted(first) ? [first] : VALUES.map(answer);
  const accepted = VALUES.filter((_, i) => isAccepted(answers[i] ?? ''));
  const type = isAccepted(first) ? 'string' : (TYPES.get(accepted.join(' ')) ?? 'other');
  const isMarked = answers.some((text) => text.includes(`--${flag} has been deprecated`));
  return { flag, type, deprecated: isMarked || new RegExp(`--${flag} [^\\n]*?\\bDEPRECATED:`).test(listed) };
}

function isUnknown(text) {
  return text.includes('unknown flag');
}

function run(program, ...args) {
  const { stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', timeout: 30_000, maxBuffer: 1 << 24 });
  if (error) throw error;
  return `${stdout}\n${stderr}`;
}

/** Words of the Go files of a tree that could be names of flags. */
function namesIn(tree, pattern = /"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"/g) {
  const words = SOURCES.map((folder) => path.join(tree, folder)).filter((folder) => existsSync(folder));
  const texts = words.flatMap(goFiles).filter((text) => /pflag|FlagSet|AddFlags/.test(text));
  const found = texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1]));
  return new Set(found);
}

function goFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.go') && !name.endsWith('_test.go'))
    .map((name) => readFileSync(path.join(folder, name), 'utf8'));
}

/** Extends the data by a version that differs in names alone. */
function compareTrees(known, minor, { tree, like }) {
  if (like === undefined) throw new Error('--like is missing');
  const [own, other] = [namesIn(tree), namesIn(like)];
  for (const component of COMPONENTS) {
    const { flags } = known[component];
    const added = flags.filter(({ flag }) => other.has(flag) && !own.has(flag));
    for (const { flag } of added) console.log(`${component}: --${flag} is not in the tree of this minor`);
    const isFound = (entry) => !added.includes(entry) && (entry.minors ?? known[component].minors)[1] > minor;
    const same = flags.filter(isFound);
    const found = same.map(({ flag, type, deprecatedSince }) => ({ flag, type, deprecated: deprecatedSince !== undefined }));
    known[component] = withMinor(known[component], minor, found);
  }
  const removed = [...own].filter((name) => !other.has(name));
  console.log(`names in this tree alone, which may be flags: ${removed.join(', ') || 'none'}`);
}

/** The flags that a tree of etcd registers, and those that it ignores. */
function readEtcd(tree) {
  const texts = ['server/embed/config.go', 'server/etcdmain/config.go'].map((file) => readFileSync(path.join(tree, file), 'utf8'));
  const constants = new Map(
    texts.flatMap((text) => [...text.matchAll(/^\s*(\w+)\s*=\s*"([a-z0-9-]+)"/gm)].map((match) => [match[1], match[2]])),
  );
  const ignored = [...(/ignored\s*=\s*\[\]string\{([^}]*)\}/.exec(texts[1])?.[1] ?? '').matchAll(/"([^"]+)"/g)];
  const deprecated = new Set(
    [...(/deprecatedFlags\s*=[^{]*\{([\s\S]*?)\n\t\}/.exec(texts[1])?.[1] ?? '').matchAll(/^\s*"([^"]+)":/gm)].map((match) => match[1]),
  );
  const registered = texts
    .flatMap((text) => text.split(/\bfs\.(?=\w*Var\()/).slice(1))
    .map((call) => {
      const [, method] = /^(\w*)Var\(/.exec(call);
      const name = /^\w*Var\(\s*(?:flags\.New\w+\((?:[^()]|\([^()]*\))*\)|[^,]+),\s*(?:"([a-z0-9-]+)"|(\w+))/.exec(call);
      const flag = name?.[1] ?? constants.get(name?.[2] ?? '');
      if (flag === undefined && !/IgnoredFlag/.test(call)) throw new Error(`cannot read the flag of ${call.slice(0, 80)}`);
      return {
        flag,
        type: method === '' ? (/NewUint32Value/.test(call.slice(0, 60)) ? 'uint' : 'string') : (GO_TYPES[method] ?? 'string'),
      };
    });
  const gates = texts.some((text) => text.includes('.AddFlag(fs, ServerFeatureGateFlagName)'))
    ? [{ flag: 'feature-gates', type: 'string' }]
    : [];
  const ignoredFlags = ignored.map((match) => ({ flag: match[1], type: 'string' })).filter(({ flag }) => !flag.startsWith('test.'));
  const all = [...gates, ...registered.filter(({ flag }) => flag !== undefined), ...ignoredFlags];
  return all.filter(({ flag }) => !EXCLUDED.has(flag)).map((one) => ({ ...one, deprecated: deprecated.has(one.flag) }));
}

function isFormer(component, minor) {
  return component !== undefined && minor < component.minors[0] - 1;
}

/** Adds a version to the flags of a component: `minors` are the first and the last version with a flag. */
function withMinor(component, minor, found) {
  const old = component ?? { minors: [minor, minor], flags: [] };
  const span = (minors) => [Math.min(minors[0], minor), Math.max(minors[1], minor)];
  const flags = new Map(old.flags.map((entry) => [entry.flag, { minors: old.minors, ...entry }]));
  for (const { flag, type, deprecated } of found) {
    const before = flags.get(flag);
    const since = deprecated ? Math.min(before?.deprecatedSince ?? minor, minor) : before?.deprecatedSince;
    const entry = {
      flag,
      type,
      minors: span(before?.minors ?? [minor, minor]),
      ...(since === undefined ? {} : { deprecatedSince: since }),
    };
    flags.set(flag, entry);
  }
  const minors = isFormer(component, minor) ? old.minors : span(old.minors);
  return { minors, flags: [...flags.values()].sort((a, b) => (a.flag < b.flag ? -1 : 1)) };
}

/** One flag a line; `minors` only where they differ from those of the component. */
function format(data) {
  const component = ([name, { minors, flags }]) => {
    const lines = flags.map(({ minors: own, ...entry }) => {
      const differs = own !== undefined && own.join() !== minors.join();
      return JSON.stringify(differs ? { ...entry, minors: own } : entry);
    });
    return `${JSON.stringify(name)}: { "minors": [${minors.join(', ')}], "flags": [\n${lines.join(',\n')}\n]}`;
  };
  return `{\n${Object.entries(data).map(component).join(',\n')}\n}\n`;
}
