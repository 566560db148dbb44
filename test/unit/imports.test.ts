import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SourceImport } from '../support/scan-source.ts';
import { REPOSITORY, repositoryTexts, resolveImport, type SourceFile, sourceFiles } from '../support/source-files.ts';

const FILES = sourceFiles('src');

interface Rule {
  /** Folders of src it may import from, besides its own. */
  readonly folders: readonly string[];
  /** Only types may be imported. */
  readonly typesOnly?: boolean;
  readonly packages?: readonly string[];
  /** Modules of Node: all, none, or names from one of them. */
  readonly node?: 'all' | Readonly<Record<string, readonly string[]>>;
}

/** Hashes, and the readers of certificates and keys: they compute, they touch nothing. */
const PURE_CRYPTO = {
  'node:crypto': [
    'createCipheriv',
    'createDecipheriv',
    'createHash',
    'createHmac',
    'createPrivateKey',
    'createPublicKey',
    'KeyObject',
    'timingSafeEqual',
    'verify',
    'X509Certificate',
  ],
};

/** The table of the architecture: who may import what. What is not said is forbidden. */
const RULES: Readonly<Record<string, Rule>> = {
  core: { folders: [], packages: ['zod', 'yaml', 'handlebars'], node: PURE_CRYPTO },
  ports: { folders: ['core'], typesOnly: true },
  engine: { folders: ['core', 'ports'] },
  phases: { folders: ['core', 'ports', 'engine'] },
  workflows: { folders: ['core', 'ports', 'engine', 'phases'] },
  agent: { folders: ['core', 'ports', 'engine', 'phases', 'workflows'] },
  adapters: { folders: ['core', 'ports'], node: 'all' },
  lab: { folders: ['core', 'ports'], packages: ['@peculiar/x509', 'reflect-metadata', 'ssh2'], node: 'all' },
  cli: {
    folders: ['core', 'ports', 'engine', 'phases', 'workflows', 'agent', 'version.ts'],
    packages: ['commander', 'yaml'],
    node: { 'node:path': ['join', 'resolve', 'dirname', 'basename', 'relative', 'isAbsolute'] },
  },
};

/** Which adapter wraps which package. An adapter is a file of src/adapters, or a folder there with the file that opens it. */
const ADAPTER_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'transport-local': ['execa'],
  openssh: ['execa'],
  ssh: ['node-ssh', 'ssh2'],
  'ssh-config': ['ssh-config'],
  kube: ['@kubernetes/client-node', 'socks'],
  'certificate-issuer': ['@peculiar/x509', 'reflect-metadata'],
};

/** Files right below src. */
const TOP_FILES: Readonly<Record<string, readonly string[]>> = {
  'bin.ts': ['cli', 'core', 'wiring.ts', 'version.ts'],
  'wiring.ts': ['adapters', 'cli', 'core', 'engine', 'ports', 'lab', 'template-files.ts', 'version.ts', 'wiring-ssh.ts'],
  'wiring-ssh.ts': ['adapters', 'core', 'engine', 'ports'],
  'template-files.ts': [],
  'version.ts': [],
};

function folderOf(path: string): string {
  return path.split('/')[1] as string;
}

/** The file that opens a folder of src/adapters. */
const OPENERS: Readonly<Record<string, string>> = { 'transport-openssh': 'openssh', 'transport-ssh': 'ssh', 'cluster-kube': 'kube' };

/** `src/adapters/transport-ssh.ts` and `src/adapters/ssh/connect.ts` are both `ssh`. */
function adapterOf(path: string): string {
  const name = (path.split('/')[2] as string).replace(/\.ts$/, '');
  return OPENERS[name] ?? name;
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function report(file: SourceFile, { line, specifier }: Pick<SourceImport, 'line' | 'specifier'>, why: string): string {
  return `${file.path}:${line} imports ${specifier}: ${why}`;
}

function violationsOf(file: SourceFile): readonly string[] {
  return file.imports.flatMap((one) => {
    const why = judge(file, one);
    return why === null ? [] : [report(file, one, why)];
  });
}

/** Why an import is not allowed; null when it is. */
function judge(file: SourceFile, one: SourceImport): string | null {
  const { specifier } = one;
  const from = folderOf(file.path);
  const target = resolveImport(file.path, specifier);
  if (target === null) return specifier.startsWith('node:') ? judgeNode(file, one) : judgePackage(file, specifier);
  if (!specifier.endsWith('.ts') && !specifier.endsWith('.json')) return 'a relative import needs its extension';
  if (!target.startsWith('src/')) return file.path === 'src/version.ts' && target === 'package.json' ? null : 'it lies outside of src';
  const to = folderOf(target);
  const top = TOP_FILES[from];
  if (top !== undefined) return top.includes(to) ? null : `src/${from} may import from ${top.join(', ') || 'nothing of src'} only`;
  const rule = RULES[from];
  if (rule === undefined) return `src/${from} is not in the table`;
  if (rule.typesOnly === true && !one.typeOnly) return `src/${from} may import types only`;
  if (from === 'adapters' && to === 'adapters' && adapterOf(file.path) !== adapterOf(target)) return 'adapters do not know each other';
  return to === from || rule.folders.includes(to) ? null : `src/${from} may import from ${[from, ...rule.folders].join(', ')} only`;
}

function judgeNode(file: SourceFile, { specifier, clause }: SourceImport): string | null {
  const from = folderOf(file.path);
  if (TOP_FILES[from] !== undefined) return null;
  const allowed = RULES[from]?.node;
  if (allowed === 'all') return null;
  const names = allowed?.[specifier];
  if (names === undefined) return `src/${from} does not touch the system`;
  const strange = clause
    .replace(/[{}]/g, '')
    .split(',')
    .map((name) => name.trim().replace(/^type /, ''))
    .filter((name) => name !== '' && !names.includes(name));
  return strange.length === 0 ? null : `of this module only ${names.join(', ')}`;
}

function judgePackage(file: SourceFile, specifier: string): string | null {
  const from = folderOf(file.path);
  const name = packageOf(specifier);
  const allowed = from === 'adapters' ? (ADAPTER_PACKAGES[adapterOf(file.path)] ?? []) : (RULES[from]?.packages ?? []);
  return allowed.includes(name) ? null : allowed.length === 0 ? 'no package belongs here' : `of all packages only ${allowed.join(', ')}`;
}

describe('imports', () => {
  it.each([...Object.keys(RULES), ...Object.keys(TOP_FILES)])('of src/%s keep to the table', (name) => {
    expect(FILES.filter(({ path }) => folderOf(path) === name).flatMap(violationsOf)).toEqual([]);
  });

  it('knows every folder of src', () => {
    const known = new Set([...Object.keys(RULES), ...Object.keys(TOP_FILES)]);
    expect([...new Set(FILES.map(({ path }) => folderOf(path)))].filter((folder) => !known.has(folder))).toEqual([]);
  });

  it('lead to files that exist', () => {
    const paths = new Set(FILES.map(({ path }) => path));
    const missing = FILES.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => specifier.endsWith('.ts') && !paths.has(resolveImport(file.path, specifier) as string))
        .map((one) => report(file, one, 'there is no such file')),
    );
    expect(missing).toEqual([]);
  });

  it('name wiring.ts in bin.ts alone, and the lab in wiring.ts alone', () => {
    const strange = FILES.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => {
          const target = resolveImport(file.path, specifier);
          if (target === 'src/wiring.ts') return file.path !== 'src/bin.ts';
          return target?.startsWith('src/lab/') === true && !file.path.startsWith('src/lab/') && file.path !== 'src/wiring.ts';
        })
        .map((one) => report(file, one, 'not from here')),
    );
    expect(strange).toEqual([]);
  });

  it('go in no circles', () => {
    expect(cyclesIn(FILES)).toEqual([]);
  });
});

/** Circles of imports that are there when the program runs, each once, as a path. */
function cyclesIn(files: readonly SourceFile[]): readonly string[] {
  const targets = new Map(
    files.map((file) => [
      file.path,
      file.imports
        .filter(({ typeOnly, clause }) => !typeOnly && !onlyTypes(clause))
        .flatMap(({ specifier }) => resolveImport(file.path, specifier) ?? []),
    ]),
  );
  const cycles = new Set<string>();
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const seen = trail.indexOf(path);
    if (seen >= 0) {
      cycles.add([...trail.slice(seen), path].join(' → '));
      return;
    }
    if (done.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    done.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return [...cycles];
}

/** `{ type A, type B }`. */
function onlyTypes(clause: string): boolean {
  const names = clause
    .replace(/[{}]/g, '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
  return clause.startsWith('{') && names.length > 0 && names.every((name) => name.startsWith('type '));
}

describe('the sources', () => {
  it('have no barrels', () => {
    expect(FILES.map(({ path }) => path).filter((path) => /(?:^|\/)index\.ts$/.test(path))).toEqual([]);
    const passingOn = FILES.flatMap((file) =>
      file.imports
        .filter(({ clause, specifier }) => clause.startsWith('*') && !clause.includes(' as ') && specifier.startsWith('.'))
        .map((one) => report(file, one, 'it passes everything on')),
    );
    expect(passingOn).toEqual([]);
  });

  it('use names like their files: kebab-case', () => {
    expect(FILES.map(({ path }) => path).filter((path) => !/^src(?:\/[a-z0-9]+(?:-[a-z0-9]+)*)+\.ts$/.test(path))).toEqual([]);
  });

  it.each<[string, RegExp, (path: string) => boolean]>([
    ['process.argv, process.env and process.exit belong to bin.ts', /\bprocess\.(?:argv|env|exit)\b/g, (path) => path === 'src/bin.ts'],
    ['core does not know the process', /\bprocess\./g, (path) => folderOf(path) !== 'core'],
    [
      'time comes from the Clock',
      /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bsetTimeout\(|\bsetInterval\(/g,
      (path) => /^(?:adapters|lab|bin\.ts|wiring\.ts)$/.test(folderOf(path)),
    ],
    [
      'chance comes from outside',
      /\bMath\.random\(|\brandomBytes\(|\brandomUUID\(/g,
      (path) => /^(?:adapters|lab|wiring\.ts)$/.test(folderOf(path)),
    ],
    ['the network belongs to adapters', /\bfetch\(|\bXMLHttpRequest\b|\bWebSocket\b/g, (path) => /^(?:adapters|lab)$/.test(folderOf(path))],
    ['output goes through Reporter and Output', /\bconsole\.\w+\(/g, () => false],
    [
      'secrets are revealed by encoders, adapters and what prints them on request',
      /\.reveal\(\)/g,
      (path) => /^(?:adapters|lab|core|cli)$/.test(folderOf(path)) || path === 'src/engine/as-root.ts',
    ],
  ])('%s', (_, pattern, isAllowed) => {
    const found = FILES.filter(({ path }) => !isAllowed(path)).flatMap(({ path, code, lineOf }) =>
      [...code.matchAll(pattern)].map((match) => `${path}:${lineOf(match.index)} ${match[0]}`),
    );
    expect(found).toEqual([]);
  });

  it('say of every exported function what it does', () => {
    const silent = FILES.flatMap(({ path, functions }) =>
      functions.filter(({ hasDocstring }) => !hasDocstring).map(({ name, line }) => `${path}:${line} ${name}`),
    );
    expect(silent).toEqual([]);
  });
});

describe('the repository', () => {
  /** Directories that hold much else, so that their name says nothing about a workplace. */
  const COMMON = ['/', '/tmp', '/home', '/root', '/usr', '/etc', '/var', '/opt', '/srv', '/mnt', '/Users'];
  const places = [REPOSITORY, dirname(REPOSITORY)].filter((path) => !COMMON.includes(path));

  it('does not speak of the place it was made in', () => {
    const patterns = [
      ...places.map((place) => new RegExp(`(?<![\\w$}.])${place}(?=/|\\b(?![-\\w.]))`)),
      new RegExp(['/opt', '(?:k8s|kubernetes)-'].join('/')),
      new RegExp(['/tmp', '(?:lab-|team\\b)'].join('/')),
    ];
    const found = [...repositoryTexts()].flatMap(([path, text]) =>
      text
        .split('\n')
        .flatMap((line, i) => (patterns.some((pattern) => pattern.test(line)) ? [`${path}:${i + 1} ${line.trim().slice(0, 100)}`] : [])),
    );
    expect(found).toEqual([]);
  });
});
