import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SourceImport } from '../support/scan-source.ts';
import { REPOSITORY, repositoryTexts, resolveImport, type SourceFile, sourceFiles } from '../support/source-files.ts';

const FILES = [...sourceFiles('src'), ...sourceFiles('lab')];

/** The domains of src, from the lowest to the highest. A domain imports from itself and from those before it. */
const DOMAINS = [
  'base',
  'codec',
  'x509',
  'kube',
  'host',
  'ssh',
  'kubelet',
  'kubeadm',
  'maintenance',
  'dynamic',
  'rollouts',
  'fleet',
  'cli',
];

/** Files right below src. The `wiring` files build the adapters; of all others, only the two programs import them. */
const TOP_FILES: Readonly<Record<string, readonly string[]>> = {
  'bin.ts': ['cli', 'run-process.ts', 'wiring.ts', 'version.ts'],
  'agent-bin.ts': ['cli', 'run-process.ts', 'wiring-agent.ts', 'version.ts'],
  'run-process.ts': ['base'],
  'wiring.ts': [
    ...DOMAINS,
    'run-process.ts',
    'template-files.ts',
    'problem-pages.ts',
    'wiring-local.ts',
    'wiring-root.ts',
    'wiring-ssh.ts',
  ],
  'wiring-agent.ts': [...DOMAINS, 'run-process.ts', 'wiring-local.ts'],
  'wiring-local.ts': [...DOMAINS, 'run-process.ts'],
  'wiring-root.ts': [...DOMAINS, 'wiring-local.ts'],
  'wiring-ssh.ts': [...DOMAINS],
  'template-files.ts': ['template-options.json'],
  'problem-pages.ts': ['base'],
  'version.ts': [],
};

/** npm packages of a folder or file: the most specific entry applies. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'src/codec': ['zod', 'yaml'],
  'src/kube': ['zod'],
  'src/kubeadm': ['zod'],
  'src/kubelet': ['zod', 'yaml'],
  'src/maintenance/gates': ['zod'],
  'src/dynamic': ['zod'],
  'src/rollouts': ['zod'],
  'src/rollouts/controller/metrics.ts': ['prom-client'],
  'src/fleet': ['zod'],
  'src/host': ['diff'],
  'src/host/adapters': ['execa', 'tar-stream'],
  'src/host/bundle': ['zod'],
  'src/host/hooks.ts': ['zod'],
  'src/host/operation/install-model.ts': ['zod'],
  'src/ssh/adapters/built-in': ['node-ssh', 'ssh2'],
  'src/ssh/adapters/openssh': ['execa'],
  'src/kube/adapters': ['@kubernetes/client-node', 'socks'],
  'src/x509/adapters': ['@peculiar/x509', 'reflect-metadata'],
  lab: ['@peculiar/x509', 'reflect-metadata', 'ssh2'],
  'src/cli': ['ansi-escapes', 'commander', 'log-update', 'yaml'],
  'src/template-files.ts': ['handlebars'],
};

/** Functions of node: modules that compute without system access. */
const PURE_NODE: Readonly<Record<string, readonly string[]>> = {
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
  'node:path': ['join', 'dirname', 'basename', 'isAbsolute'],
};
/** `resolve` and `relative` know the working directory. */
const CLI_NODE: typeof PURE_NODE = { ...PURE_NODE, 'node:path': ['join', 'resolve', 'dirname', 'basename', 'relative', 'isAbsolute'] };

/** The domain of a file, or its own name right below src; `lab` for the lab. */
function folderOf(path: string): string {
  return path.split('/')[path.startsWith('lab/') ? 0 : 1] as string;
}

/** Whether a file may access the system: adapters, the lab, and the files that start the process. */
function isAdapter(path: string): boolean {
  return path.includes('/adapters/') || folderOf(path) === 'lab' || TOP_FILES[folderOf(path)] !== undefined;
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
    const why = validate(file, one);
    return why === null ? [] : [report(file, one, why)];
  });
}

/** Why an import is not allowed; null when it is. */
function validate(file: SourceFile, one: SourceImport): string | null {
  const { specifier } = one;
  const from = folderOf(file.path);
  const target = resolveImport(file.path, specifier);
  if (target === null) return specifier.startsWith('node:') ? judgeNode(file, one) : judgePackage(file, specifier);
  if (!specifier.endsWith('.ts') && !specifier.endsWith('.json')) return 'a relative import needs its extension';
  if (target.startsWith('lab/') || from === 'lab') return validateLab(file.path, target);
  if (!target.startsWith('src/')) return file.path === 'src/version.ts' && target === 'package.json' ? null : 'it lies outside of src';
  const to = folderOf(target);
  const top = TOP_FILES[from];
  if (top !== undefined) return top.includes(to) ? null : `src/${from} may import from ${top.join(', ') || 'nothing of src'} only`;
  if (from === 'cli' && to === 'version.ts') return null;
  if (!DOMAINS.includes(from)) return `src/${from} is not a domain`;
  if (target.includes('/adapters/') && !file.path.includes('/adapters/')) return 'only the wiring imports adapters';
  return DOMAINS.indexOf(to) >= 0 && DOMAINS.indexOf(to) <= DOMAINS.indexOf(from) ? null : `src/${from} is below src/${to}`;
}

/** The lab uses the product; of the product, only the command that starts the lab imports it. */
function validateLab(from: string, target: string): string | null {
  if (from.startsWith('lab/'))
    return target.includes('/adapters/') || target.startsWith('src/wiring') ? 'only the wiring imports adapters' : null;
  return from === 'src/cli/lab-command.ts' ? null : 'only the lab command imports the lab';
}

function judgeNode(file: SourceFile, { specifier, clause }: SourceImport): string | null {
  if (isAdapter(file.path)) return null;
  const names = (folderOf(file.path) === 'cli' ? CLI_NODE : PURE_NODE)[specifier];
  if (names === undefined) return 'only adapters touch the system';
  const strange = clause
    .replace(/[{}]/g, '')
    .split(',')
    .map((name) => name.trim().replace(/^type /, ''))
    .filter((name) => name !== '' && !names.includes(name));
  return strange.length === 0 ? null : `of this module only ${names.join(', ')}`;
}

function judgePackage(file: SourceFile, specifier: string): string | null {
  const name = packageOf(specifier);
  const folder = Object.keys(PACKAGES)
    .filter((each) => file.path === each || file.path.startsWith(`${each}/`))
    .toSorted((a, b) => b.length - a.length)[0];
  const allowed = folder === undefined ? [] : (PACKAGES[folder] ?? []);
  return allowed.includes(name) ? null : `${name} is not a package of ${folder ?? 'this folder'}`;
}

describe('imports', () => {
  it.each([...DOMAINS, 'lab', ...Object.keys(TOP_FILES)])('of %s keep to the order of the domains', (name) => {
    expect(FILES.filter(({ path }) => folderOf(path) === name).flatMap(violationsOf)).toEqual([]);
  });

  it('covers every folder', () => {
    const known = new Set([...DOMAINS, 'lab', ...Object.keys(TOP_FILES)]);
    expect([...new Set(FILES.map(({ path }) => folderOf(path)))].filter((folder) => !known.has(folder))).toEqual([]);
  });

  it('lead to files that exist', () => {
    const paths = new Set(FILES.map(({ path }) => path));
    const missing = FILES.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => specifier.endsWith('.ts') && !paths.has(resolveImport(file.path, specifier) as string))
        .map((one) => report(file, one, 'file does not exist')),
    );
    expect(missing).toEqual([]);
  });

  it('name the wiring in the two programs alone', () => {
    const strange = FILES.filter(
      ({ path }) => !['src/bin.ts', 'src/agent-bin.ts'].includes(path) && !path.startsWith('src/wiring'),
    ).flatMap((file) =>
      file.imports
        .filter(({ specifier }) => resolveImport(file.path, specifier)?.startsWith('src/wiring'))
        .map((one) => report(file, one, 'only bin.ts and agent-bin.ts import the wiring')),
    );
    expect(strange).toEqual([]);
  });

  it('have no cycles', () => {
    const targets = FILES.map((file) => [file.path, targetsOf(file)] as const);
    expect(cyclesIn(new Map(targets))).toEqual([]);
  });

  it('have no cycles between the folders of a domain', () => {
    const targets = new Map<string, Set<string>>();
    for (const file of FILES.filter(({ path }) => path.startsWith('src/'))) {
      const folder = dirname(file.path);
      const others = targetsOf(file)
        .map((target) => dirname(target))
        .filter((other) => other !== folder && folderOf(`${other}/`) === folderOf(file.path));
      targets.set(folder, new Set([...(targets.get(folder) ?? []), ...others]));
    }
    expect(cyclesIn(new Map([...targets].map(([folder, others]) => [folder, [...others]])))).toEqual([]);
  });
});

function targetsOf(file: SourceFile): readonly string[] {
  return file.imports.flatMap(({ specifier }) => resolveImport(file.path, specifier) ?? []);
}

/** Cycles of a graph, each once, as a path. Type imports count as well. */
function cyclesIn(targets: ReadonlyMap<string, readonly string[]>): readonly string[] {
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
    expect(FILES.map(({ path }) => path).filter((path) => !/^(?:src|lab)(?:\/[a-z0-9]+(?:-[a-z0-9]+)*)+\.ts$/.test(path))).toEqual([]);
  });

  it.each<[string, RegExp, (path: string) => boolean]>([
    [
      'process.argv, process.env and process.exit belong to run-process.ts',
      /\bprocess\.(?:argv|env|exit)\b/g,
      (path) => path === 'src/run-process.ts',
    ],
    ['only adapters know the process', /\bprocess\./g, (path) => isAdapter(path)],
    [
      'time is read from the Clock',
      /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bsetTimeout\(|\bsetInterval\(/g,
      (path) => isAdapter(path),
    ],
    ['random values are passed in', /\bMath\.random\(|\brandomBytes\(|\brandomUUID\(/g, (path) => isAdapter(path)],
    ['the network belongs to adapters', /\bfetch\(|\bXMLHttpRequest\b|\bWebSocket\b/g, (path) => isAdapter(path)],
    ['output goes through Reporter and Output', /\bconsole\.\w+\(/g, () => false],
    [
      'secrets are not revealed by phases, workflows, the agent and the engine',
      /\.reveal\(\)/g,
      (path) =>
        isAdapter(path) || path === 'src/host/as-root.ts' || (folderOf(path) !== 'host' && !/\/(?:phases|workflows|agent)\//.test(path)),
    ],
  ])('%s', (_, pattern, isAllowed) => {
    const found = FILES.filter(({ path }) => !isAllowed(path)).flatMap(({ path, code, lineOf }) =>
      [...code.matchAll(pattern)].map((match) => `${path}:${lineOf(match.index)} ${match[0]}`),
    );
    expect(found).toEqual([]);
  });
});

describe('the repository', () => {
  /** Directories with general content, whose names do not identify a workplace. */
  const COMMON = ['/', '/tmp', '/home', '/root', '/usr', '/etc', '/var', '/opt', '/srv', '/mnt', '/Users'];
  const places = [REPOSITORY, dirname(REPOSITORY)].filter((path) => !COMMON.includes(path));

  it('does not mention paths of the development host', () => {
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
