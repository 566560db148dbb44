import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { CommandFact, FactQuery } from '../../host/facts/query.ts';

/**
 * How the runtime behind a CRI socket answers the CRI v1 API. `no-cri`: it serves other APIs only. `not-listening`: the
 * socket is left from a stopped runtime. `mute`: it accepts the connection and does not answer. `failing`: it answers
 * with an error.
 */
export type CriState =
  | { readonly kind: 'served' | 'no-cri' | 'not-listening' | 'mute' }
  | { readonly kind: 'failing'; readonly message: string };

/** Seconds for an answer, more than the two of kubeadm 1.36 (cmd/kubeadm/app/util/runtime). */
export const CRI_TIMEOUT_SECONDS = 5;

/**
 * Calls the method $2 of runtime.v1.RuntimeService: a gRPC call is a POST with HTTP/2, and its message without fields has five
 * bytes. crictl with the command $3 is used where curl is missing or has no HTTP/2; old versions of crictl ask for another API.
 */
const SCRIPT = `p=\${1#unix:}; p=\${p#//}; [ -S "$p" ] || exit 3
m=application/grpc; u=http://localhost/runtime.v1.RuntimeService/$2
if command -v curl >/dev/null 2>&1; then
  printf '\\0\\0\\0\\0\\0' | curl -sS -m ${CRI_TIMEOUT_SECONDS} --http2-prior-knowledge --unix-socket "$p" -H "content-type: $m" -H 'te: trailers' --data-binary @- -D - -o /dev/null "$u" 2>&1
  c=$?; echo "curl-exit: $c"; case $c in 0|7|28) exit 0;; esac
fi
command -v crictl >/dev/null 2>&1 || exit 0
crictl --runtime-endpoint "$1" --timeout ${CRI_TIMEOUT_SECONDS}s "$3" 2>&1 && echo 'grpc-status: 0'; exit 0`;

/** Calls a method of the runtime behind a CRI socket; `grpcStatus` reads the output. Exit code 3: no such socket. */
export function criCall(criSocket: string, method: 'Version' | 'RuntimeConfig'): FactQuery {
  const argv = ['sh', '-c', SCRIPT, 'sh', criSocket, method, method === 'Version' ? 'version' : 'runtime-config'];
  return { kind: 'command', argv, isParallel: true };
}

/** `0`: OK; `12`: the runtime does not have the method. Undefined: no answer. */
export function grpcStatus(stdout: string): string | undefined {
  return /^grpc-status: (\d{1,3})\r?$/m.exec(stdout)?.[1];
}

/** Whether the runtime behind a CRI socket serves the CRI v1 API; null: no such socket, or it cannot be asked. */
export function criState(criSocket: string): Fact<CriState | null> {
  return defineFact({ asked: criCall(criSocket, 'Version') }, ({ asked }) => readCriState(asked as CommandFact));
}

function readCriState({ exitCode, stdout }: CommandFact): CriState | null {
  if (exitCode !== 0) return null;
  const status = grpcStatus(stdout);
  if (status === '0') return { kind: 'served' };
  if (status === '12' || /unknown service runtime\.v1\.RuntimeService/.test(stdout)) return { kind: 'no-cri' };
  if (/^curl-exit: 7$|connect: (?:connection refused|no such file)/m.test(stdout)) return { kind: 'not-listening' };
  if (/^curl-exit: 28$|DeadlineExceeded|deadline exceeded/m.test(stdout)) return { kind: 'mute' };
  const message = /^grpc-message: ([^\r\n]{1,500})/m.exec(stdout)?.[1];
  return status === undefined ? null : { kind: 'failing', message: message ?? `gRPC status ${status}` };
}
