import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { upTo } from '../../base/text/up-to.ts';

const LONGEST = 300;

/**
 * The kubelet's last error about a pod in its log.
 * @param log lines of the kubelet, the newest last
 * @param pod `NAMESPACE/NAME`
 * @returns the message without its enclosing ones, at most 300 characters; null: no error about the pod
 */
export function podErrorIn(log: string, pod: string): string | null {
  const line = log.split('\n').findLast((each) => each.includes(`pod="${pod}"`) && each.includes(' err="'));
  if (line === undefined) return null;
  const quoted = upTo(line.slice(line.indexOf(' err="') + ' err="'.length), '" pod="');
  // Each error is quoted inside the enclosing one.
  const text = quoted.replaceAll('\\', '');
  const innermost = text.slice(text.lastIndexOf(' desc = ') + 1).replace(/^desc = /, '');
  const message = trimTrailing(innermost, '" ');
  return message.length <= LONGEST ? message : `${message.slice(0, LONGEST)}...`;
}
