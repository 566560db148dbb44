import { AppError, type Problem } from '../base/errors.ts';

/** A kind of file, and the command or option that reads it. */
interface FileKind {
  /** Matches `apiVersion kind` of a document, or, for a file of another format, its text. */
  readonly pattern: RegExp;
  /** Codes with a better hint: of the reader of this kind, about the content of the file. */
  readonly reportedBy?: readonly string[];
  /** A sentence with the name of the file in place of FILE. */
  readonly hint: string;
}

const DOCUMENTS: readonly FileKind[] = [
  {
    pattern: /^kubeletadm\.dev\/\S+ Fleet$/,
    reportedBy: ['PLAN_INVALID'],
    hint: 'The file is a fleet file: validate it with kubeletadm fleet validate -f FILE, apply it with kubeletadm apply -f FILE',
  },
  {
    pattern: /^kubeletadm\.dev\/\S+ FleetPlan$/,
    reportedBy: ['PLAN_INVALID'],
    hint: 'The file is a saved plan: show it with kubeletadm plan show FILE, apply it with kubeletadm apply FILE',
  },
  {
    pattern:
      /^(?:kubeadm|kubelet\.config|kubeproxy\.config)\.k8s\.io\/\S+ (?:Init|Cluster|Join|Reset|Upgrade|Kubelet|KubeProxy)Configuration$/,
    hint: 'Validate the file with kubeletadm config validate FILE, and pass it to init, join, reset or upgrade with --config FILE',
  },
  {
    pattern: /^k0sctl\.k0sproject\.io\/\S+ Cluster$/,
    reportedBy: ['FLEET_IMPORT_INVALID'],
    hint: 'The file is for k0sctl: import its hosts with kubeletadm fleet init --from-k0sctl FILE',
  },
  { pattern: /^v1 Config$/, hint: 'The file is a kubeconfig: pass it with --kubeconfig FILE' },
];

/** Codes of a document that its reader does not recognise. */
const UNRECOGNISED: ReadonlySet<string> = new Set(['CONFIG_UNKNOWN_KIND', 'CONFIG_WRONG_KIND', 'PLAN_INVALID', 'FLEET_IMPORT_INVALID']);

/** Replaces the hints of problems with a file of another command: the hint names the command that reads the file. */
export function nameFileKinds(problems: readonly Problem[], textOf: (file: string) => string | undefined): readonly Problem[] {
  return problems.map((problem) => {
    const file = problem.position?.file ?? /^.+?(?= is not a valid saved plan)/.exec(problem.message)?.[0];
    const text = file === undefined || !UNRECOGNISED.has(problem.code) ? undefined : textOf(file);
    const kind = text === undefined ? undefined : kindOf(text, problem);
    return kind === undefined ? problem : { ...problem, hint: kind.hint.replaceAll('FILE', file ?? '') };
  });
}

function kindOf(text: string, { code, position }: Problem): FileKind | undefined {
  const header = headerOf(text, position?.line ?? 1);
  return DOCUMENTS.find(({ pattern, reportedBy = [] }) => pattern.test(header) && !reportedBy.includes(code));
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
  if (problems.every((problem, i) => problem === error.problems[i])) return error;
  return new AppError(problems, { exitCode: error.exitCode, detail: error.detail, cause: error.cause });
}
