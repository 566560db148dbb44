import { AppError, type Problem } from '../base/errors.ts';

const DOCUMENTS: readonly {
  /** Matches `apiVersion kind` of a document. */
  readonly pattern: RegExp;
  /** Codes with a better hint: of the reader of this kind, about the content of the file. */
  readonly reportedBy?: readonly string[];
  /** A sentence with the name of the file in place of FILE. */
  readonly hint: string;
}[] = [
  {
    pattern: /^kubeletadm\.dev\/\S+ Fleet$/,
    reportedBy: ['PLAN_INVALID', 'FLEET_IMPORT_INVALID'],
    hint: 'The file is a fleet file: validate it with kubeletadm validate FILE, apply it with kubeletadm apply -f FILE',
  },
  {
    pattern: /^kubeletadm\.dev\/\S+ FleetPlan$/,
    reportedBy: ['PLAN_INVALID'],
    hint: 'The file is a saved plan: show it with kubeletadm plan show FILE, apply it with kubeletadm apply FILE',
  },
  {
    pattern: /^kubeletadm\.dev\/\S+ KubeletConfigurationOverlay$/,
    hint: 'Validate the file with kubeletadm validate FILE, and pass it to dynamic assign with --file FILE',
  },
  {
    pattern:
      /^(?:kubeadm|kubelet\.config|kubeproxy\.config)\.k8s\.io\/\S+ (?:Init|Cluster|Join|Reset|Upgrade|Kubelet|KubeProxy)Configuration$/,
    hint: 'Validate the file with kubeletadm validate FILE, and pass it to init, join, reset or upgrade with --config FILE',
  },
  {
    pattern: /^k0sctl\.k0sproject\.io\/\S+ Cluster$/,
    reportedBy: ['FLEET_IMPORT_INVALID'],
    hint: 'The file is for k0sctl: import its hosts with kubeletadm fleet init --from-k0sctl FILE',
  },
  { pattern: /^v1 Config$/, hint: 'The file is a kubeconfig: pass it with --kubeconfig FILE' },
];

const FLAGS = 'with kubeletadm config migrate CONFIG --flags FILE --from 1.X --to 1.Y';

/** Files of other formats. All patterns of one match the text. */
const FORMATS: readonly { readonly patterns: readonly RegExp[]; readonly hint: string }[] = [
  {
    patterns: [/^\[(?:Unit|Service|Install)\][ \t]*\r?$/m],
    hint: `The file looks like a systemd unit or drop-in: convert its kubelet flags ${FLAGS}`,
  },
  {
    patterns: [
      /^(?:maxPods|podsPerCore|podPidsLimit|evictionHard|evictionSoft|systemReserved|kubeReserved|cgroupDriver|featureGates|serializeImagePulls|cpuManagerPolicy|topologyManagerPolicy|shutdownGracePeriod|containerLogMax\w{1,20}|imageGC\w{1,40}):/m,
    ],
    hint: 'The file looks like fields of a kubelet: begin it with "apiVersion: kubeletadm.dev/v1alpha1" and "kind: KubeletConfigurationOverlay" if it has only the fields to change, or with "apiVersion: kubelet.config.k8s.io/v1beta1" and "kind: KubeletConfiguration"',
  },
  { patterns: [/^(?:KUBE\w*=|--[a-z])/m], hint: `The file looks like a file with kubelet flags: convert them ${FLAGS}` },
  {
    patterns: [/^[ \t]*(?:Host|Match)[ \t]+\S/im, /^[ \t]*(?:HostName|User|Port|IdentityFile|ProxyJump|ProxyCommand)[ \t=]/im],
    hint: 'The file looks like an ssh_config: import its hosts with kubeletadm fleet init -f fleet.yaml --from-ssh-config FILE',
  },
  ...[
    // A group with a host in its first line, or with a suffix.
    /^\[[\w.-]+\][ \t]*\r?\n(?:[ \t]*(?:[#;].*)?\r?\n)*[^\s=#;[{]+(?:[ \t]+\w+=.*)?[ \t]*\r?$/m,
    /^\[[\w.-]+:(?:vars|children)\]/m,
    /^\w[\w.@-]{0,200}[ \t]{1,80}ansible_\w{1,80}=/m,
    // In YAML.
    /^(?:all:[ \t]*\r?\n|[\w-]+:[ \t]*\r?\n(?:[ \t]*#.*\r?\n)*[ \t]+(?:hosts|children):)/m,
  ].map((pattern) => ({
    patterns: [pattern],
    hint: 'The file looks like an Ansible inventory: import its hosts with kubeletadm fleet init -f fleet.yaml --from-ansible FILE',
  })),
];

/** Codes of a file that its reader does not recognise. */
const UNRECOGNISED: ReadonlySet<string> = new Set([
  'CONFIG_MISSING_HEADER',
  'CONFIG_SYNTAX',
  'CONFIG_UNKNOWN_KIND',
  'CONFIG_WRONG_KIND',
  'CONFIG_WRONG_TYPE',
  'FLEET_IMPORT_INVALID',
  'PLAN_INVALID',
]);

/**
 * Replaces the hints of problems with a file of another command: the hint names the command that reads the file, and is given once for a
 * line of the file.
 */
export function nameFileKinds(problems: readonly Problem[], textOf: (file: string) => string | undefined): readonly Problem[] {
  const given = new Set<string>();
  return problems.flatMap((problem) => {
    const { code, message, path = 'kind', position } = problem;
    const file = position?.file ?? /^.+?(?= is not a valid saved plan)/.exec(message)?.[0];
    const isHeader = path === 'kind' || path === 'apiVersion';
    const text = file === undefined || !isHeader || !UNRECOGNISED.has(code) ? undefined : textOf(file);
    const hint = text === undefined ? undefined : hintFor(text, problem);
    if (file === undefined || hint === undefined) return [problem];
    const key = `${file}:${position?.line}:${hint}`;
    if (given.has(key)) return [];
    given.add(key);
    return [{ ...problem, hint: hint.replaceAll('FILE', file === '-' ? 'FILE' : file) }];
  });
}

function hintFor(text: string, { code, position }: Problem): string | undefined {
  const isDocument = /^["'{ \t]*apiVersion["']?[ \t]*:/m.test(text);
  // Importers read these formats, and have hints of their own.
  if (!isDocument && code === 'FLEET_IMPORT_INVALID') return undefined;
  if (!isDocument) return FORMATS.find(({ patterns }) => patterns.every((each) => each.test(text)))?.hint;
  if (code === 'CONFIG_SYNTAX') return undefined;
  const header = headerOf(text, position?.line ?? 1);
  return DOCUMENTS.find(({ pattern, reportedBy = [] }) => pattern.test(header) && !reportedBy.includes(code))?.hint;
}

/** Whether a text is a fleet file or a saved plan; null: neither. */
export function documentKind(text: string): 'Fleet' | 'FleetPlan' | null {
  const [, kind] = /^kubeletadm\.dev\/\S+ (Fleet|FleetPlan)$/.exec(headerOf(text, 1)) ?? [];
  return kind === 'Fleet' || kind === 'FleetPlan' ? kind : null;
}

/** `apiVersion kind` of the document with a line of a file. */
function headerOf(text: string, line: number): string {
  const lines = text.split('\n');
  const first = lines.slice(0, line).findLastIndex((each) => each.startsWith('---')) + 1;
  const end = lines.findIndex((each, i) => i >= first && each.startsWith('---'));
  const document = lines.slice(first, end < 0 ? undefined : end).join('\n');
  const [apiVersion, kind] = ['apiVersion', 'kind'].map(
    (name) => new RegExp(`(?:^|[{,])[ \\t]{0,8}"?${name}"?:[ \\t]{0,8}["']?([^\\s"',}]+)`, 'm').exec(document)?.[1],
  );
  return `${apiVersion} ${kind}`;
}

/** As `nameFileKinds`, for the problems of an error. */
export function nameFileKindsOf(error: unknown, textOf: (file: string) => string | undefined): unknown {
  if (!(error instanceof AppError)) return error;
  const problems = nameFileKinds(error.problems, textOf);
  if (problems.every((problem) => error.problems.includes(problem))) return error;
  return new AppError(problems, { exitCode: error.exitCode, detail: error.detail, cause: error.cause });
}
