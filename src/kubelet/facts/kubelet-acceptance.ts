import type { Arg } from '../../base/arg.ts';
import { defineFact, type Fact } from '../../host/facts/fact.ts';
import { TEMPORARY_DIRECTORY } from '../../host/shell-program.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { flagKey, parseCommandLine } from '../flags/command-line.ts';
import { CGROUP_VERSION, cgroupVersionOf } from './cgroup-driver.ts';
import { explainKubeletOutput } from './kubelet-failure.ts';
import { parseKubeletVersion } from './kubelet-version.ts';

/** A kubelet's verdict on a configuration. `unknown`: the kubelet did not run, or its output has no verdict. */
export type KubeletAcceptance =
  | { readonly verdict: 'accepted' }
  | { readonly verdict: 'refused'; readonly cause: string; readonly hint: string; readonly isHost: boolean }
  | { readonly verdict: 'unknown'; readonly why: string };

/**
 * Makes the host's own kubelet binary validate a configuration without running: `--exit-on-lock-contention`
 * without a lock file is refused right after flags and file were read, defaulted and validated. The process
 * has no kubeconfig and only temporary directories, and is killed after a timeout.
 * @param kubeletPath path of the binary on the host; if missing, the binary of the same name on PATH is used
 * @param config text of the KubeletConfiguration
 * @param flags of the future command line, which override the configuration: see `flagsForQuery`
 * @see kubernetes/kubernetes cmd/kubelet/app/server.go (the same order from 1.20 to 1.36; up to 1.35, InitializeTLS reads the client CA before)
 */
export function kubeletAcceptance(kubeletPath: string, config: string, flags: readonly Arg[]): Fact<KubeletAcceptance> {
  const words = flags.map(({ name, value }) => `--${name}=${value}`);
  return defineFact(
    { reported: { kind: 'command', argv: ['sh', '-c', ASK, 'sh', kubeletPath, ...words], stdin: config } },
    ({ reported }) => {
      if (reported.exitCode !== CANNOT_WRITE) return readAcceptance(`${reported.stdout}\n${reported.stderr}`);
      return { verdict: 'unknown', why: `the host cannot store temporary files: ${lastLine(reported.stderr)}` };
    },
  );
}

/**
 * The version of a kubelet binary (null: `--version` failed or printed something else), whether the shell could not execute the
 * binary, and the cgroup version of the host (null: unknown).
 */
export function queriedKubelet(kubeletPath: string) {
  return defineFact(
    {
      version: { kind: 'command', argv: [kubeletPath, '--version'] },
      cgroup: CGROUP_VERSION,
    },
    ({ version, cgroup }) => ({
      isMissing: version.exitCode === 126 || version.exitCode === 127,
      version: version.exitCode === 0 ? parseKubeletVersion(version.stdout) : null,
      cgroupVersion: cgroupVersionOf(cgroup),
    }),
  );
}

const TIMEOUT_SECONDS = 20;
/** Exit code if the files of the query could not be written. The kubelet did not run. */
const CANNOT_WRITE = 74;

/**
 * Keeps the end of the output, which has the reason. The lock flags are last so that no other flag overrides
 * them. The two empty files stand for the serving certificate, which the kubelet would otherwise create before it
 * refuses the flags: a key of RSA takes 0.1 to 0.3 s. Kubelets up to 1.35 read the CA of clients before they refuse the flags, but on a
 * new host the run writes this file later.
 */
const ASK = `umask 077
k=$1; shift; [ -x "$k" ] || k=\${k##*/}
${TEMPORARY_DIRECTORY} || exit ${CANNOT_WRITE}
trap 'rm -rf -- "$d"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$d/config.yaml" && mkdir "$d/pki" && : >"$d/pki/kubelet.crt" && : >"$d/pki/kubelet.key" || exit ${CANNOT_WRITE}
timeout -s KILL ${TIMEOUT_SECONDS} "$k" "$@" --config="$d/config.yaml" --cert-dir="$d/pki" --root-dir="$d/root" --client-ca-file= --lock-file= --exit-on-lock-contention=true </dev/null 2>&1 | tail -c 32768`;

const ACCEPTED = /cannot exit on lock file contention: no lock file specified/;
const ONLY_CGROUPS = /failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1/;

function readAcceptance(output: string): KubeletAcceptance {
  if (ACCEPTED.test(output)) return { verdict: 'accepted' };
  const failure = explainKubeletOutput(output);
  if (failure !== null) return { verdict: 'refused', cause: failure.cause, hint: failure.hint, isHost: ONLY_CGROUPS.test(output) };
  const last = lastLine(output);
  return { verdict: 'unknown', why: last === '' ? `no output within ${TIMEOUT_SECONDS} s` : last };
}

function lastLine(output: string): string {
  return output.trim().split('\n').at(-1)?.trim() ?? '';
}

/** Flags that the query sets itself, that would give the kubelet access to the cluster, or that redirect its output. */
const UNUSED_IN_QUERY: ReadonlySet<string> = new Set([
  ...['config', 'cert-dir', 'root-dir', 'lock-file', 'exit-on-lock-contention', 'kubeconfig', 'bootstrap-kubeconfig', 'dynamic-config-dir'],
  ...['help', 'version', 'runonce', 'log-dir', 'log-file', 'logtostderr', 'stderrthreshold'],
  // HTTP headers can authenticate, and the query is logged.
  'manifest-url-header',
  'client-ca-file',
]);

/**
 * The flags of a command line that affect the verdict, for `kubeletAcceptance`.
 * @param words without the program name
 */
export function flagsForQuery(words: readonly string[], options: KubeletReader): readonly Arg[] {
  return parseCommandLine(words, options)
    .flags.filter(({ name }) => !UNUSED_IN_QUERY.has(flagKey(name)))
    .map(({ name, value }) => ({ name, value }));
}
