import type { Arg } from '../../base/arg.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';
import { type FlagOptions, flagKey, parseCommandLine } from '../flags/command-line.ts';
import { explainKubeletOutput } from './kubelet-failure.ts';
import { parseKubeletVersion } from './kubelet-version.ts';

/** What a kubelet says about a configuration. `unknown`: it could not be asked, or said nothing that tells. */
export type KubeletAcceptance =
  | { readonly verdict: 'accepted' }
  | { readonly verdict: 'refused'; readonly cause: string; readonly hint: string; readonly isHost: boolean }
  | { readonly verdict: 'unknown'; readonly why: string };

export interface KubeletAcceptanceInput {
  /** Where the binary is on the host; when it is not there, one of that name on the PATH is asked. */
  readonly kubeletPath: string;
  /** Text of the KubeletConfiguration. */
  readonly config: string;
  /** The flags it will run with: they win over the configuration. See `flagsForQuery`. */
  readonly flags: readonly Arg[];
}

/**
 * Lets the host's own kubelet binary read a configuration, without it ever getting to run: it is told to leave when its lock file is contended
 * and given no lock file, which it refuses as the first thing after it has read, defaulted and validated flags and file. It has no kubeconfig,
 * its directories are thrown away, and it is killed if it is not done in time.
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go (the same order from 1.20 to 1.36)
 */
export function kubeletAcceptance({ kubeletPath, config, flags }: KubeletAcceptanceInput): Fact<KubeletAcceptance> {
  const words = flags.map(({ name, value }) => `--${name}=${value}`);
  return defineFact(
    { reported: { kind: 'command', argv: ['sh', '-c', ASK, 'sh', kubeletPath, ...words], stdin: config } },
    ({ reported }) => readAcceptance(`${reported.stdout}\n${reported.stderr}`),
  );
}

/** The version of a kubelet binary and of the control groups of the host, null where they are not known. */
export function queriedKubelet(kubeletPath: string): Fact<{ readonly version: string | null; readonly cgroupVersion: 1 | 2 | null }> {
  return defineFact(
    {
      version: { kind: 'command', argv: [kubeletPath, '--version'] },
      cgroup: { kind: 'command', argv: ['stat', '-f', '-c', '%T', '/sys/fs/cgroup'] },
    },
    ({ version, cgroup }) => ({
      version: version.exitCode === 0 ? parseKubeletVersion(version.stdout) : null,
      cgroupVersion: cgroup.exitCode === 0 ? (cgroup.stdout.trim() === 'cgroup2fs' ? 2 : 1) : null,
    }),
  );
}

const TIMEOUT_SECONDS = 20;

/** Keeps the end of what it says: there it says why it ended. The lock flags come last, so that no other can take them back. */
const ASK = `umask 077
k=$1; shift; [ -x "$k" ] || k=\${k##*/}
d=$(mktemp -d) || exit 1
trap 'rm -rf -- "$d"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$d/config.yaml" || exit 1
timeout -s KILL ${TIMEOUT_SECONDS} "$k" "$@" --config="$d/config.yaml" --cert-dir="$d/pki" --root-dir="$d/root" --lock-file= --exit-on-lock-contention=true </dev/null 2>&1 | tail -c 32768`;

const ACCEPTED = /cannot exit on lock file contention: no lock file specified/;
const ONLY_CGROUPS = /failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1/;

function readAcceptance(output: string): KubeletAcceptance {
  if (ACCEPTED.test(output)) return { verdict: 'accepted' };
  const failure = explainKubeletOutput(output);
  if (failure !== null) return { verdict: 'refused', cause: failure.cause, hint: failure.hint, isHost: ONLY_CGROUPS.test(output) };
  const last = output.trim().split('\n').at(-1)?.trim() ?? '';
  return { verdict: 'unknown', why: last === '' ? `it said nothing within ${TIMEOUT_SECONDS} s` : last };
}

/** Flags that are ours to give, that would let the kubelet reach the cluster, or that keep from us what it says. */
const UNUSED_IN_QUERY: ReadonlySet<string> = new Set([
  ...['config', 'cert-dir', 'root-dir', 'lock-file', 'exit-on-lock-contention', 'kubeconfig', 'bootstrap-kubeconfig', 'dynamic-config-dir'],
  ...['help', 'version', 'runonce', 'log-dir', 'log-file', 'logtostderr', 'stderrthreshold'],
]);

/**
 * The flags of a command line that matter to the verdict, as `kubeletAcceptance` takes them.
 * @param words without the program itself
 */
export function flagsForQuery(words: readonly string[], options: FlagOptions): readonly Arg[] {
  return parseCommandLine(words, options)
    .flags.filter(({ name }) => !UNUSED_IN_QUERY.has(flagKey(name)))
    .map(({ name, value }) => ({ name, value }));
}
