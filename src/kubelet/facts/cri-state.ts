import { defineFact, type Fact } from '../../host/facts/fact.ts';
import type { CommandFact } from '../../host/facts/query.ts';

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
 * Calls Version of runtime.v1.RuntimeService: a gRPC call is a POST with HTTP/2, and its message without fields has five
 * bytes. crictl is used where curl is missing or has no HTTP/2; old versions of crictl ask for another API.
 */
const SCRIPT = `p=\${1#unix:}; p=\${p#//}; [ -S "$p" ] || exit 3
m=application/grpc; u=http://localhost/runtime.v1.RuntimeService/Version
if command -v curl >/dev/null 2>&1; then
  printf '\\0\\0\\0\\0\\0' | curl -sS -m ${CRI_TIMEOUT_SECONDS} --http2-prior-knowledge --unix-socket "$p" -H "content-type: $m" -H 'te: trailers' --data-binary @- -D - -o /dev/null "$u" 2>&1
  c=$?; echo "curl-exit: $c"; case $c in 0|7|28) exit 0;; esac
fi
command -v crictl >/dev/null 2>&1 || exit 0
crictl --runtime-endpoint "$1" --timeout ${CRI_TIMEOUT_SECONDS}s version 2>&1 && echo 'grpc-status: 0'; exit 0`;

/** Whether the runtime behind a CRI socket serves the CRI v1 API; null: no such socket, or it cannot be asked. */
export function criState(criSocket: string): Fact<CriState | null> {
  const argv = ['sh', '-c', SCRIPT, 'sh', criSocket];
  return defineFact({ asked: { kind: 'command', argv, isParallel: true } }, ({ asked }) => readCriState(asked));
}

function readCriState({ exitCode, stdout }: CommandFact): CriState | null {
  if (exitCode !== 0) return null;
  const status = /^grpc-status: (\d{1,3})\r?$/m.exec(stdout)?.[1];
  if (status === '0') return { kind: 'served' };
  if (status === '12' || /unknown service runtime\.v1\.RuntimeService/.test(stdout)) return { kind: 'no-cri' };
  if (/^curl-exit: 7$|connect: (?:connection refused|no such file)/m.test(stdout)) return { kind: 'not-listening' };
  if (/^curl-exit: 28$|DeadlineExceeded|deadline exceeded/m.test(stdout)) return { kind: 'mute' };
  const message = /^grpc-message: ([^\r\n]{1,500})/m.exec(stdout)?.[1];
  return status === undefined ? null : { kind: 'failing', message: message ?? `gRPC status ${status}` };
}
