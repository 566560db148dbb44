import { quoteValue } from '../../codec/document-problems.ts';
import type { Minor } from '../catalogue.ts';

/** The first minor with strict ranges: before, `5-3` was empty and `1-2-3` was ignored. */
const STRICT_SINCE: Minor = 22;

const MAX_INT = 2n ** 63n - 1n;

/**
 * The reason why the kubelet of a minor cannot parse a CPU list such as `0-3,8`: a clause, or null if valid.
 * @see k8s.io/utils/cpuset Parse, and before 1.26 kubernetes/kubernetes pkg/kubelet/cm/cpuset
 */
export function faultOfCpuList(text: string, minor: Minor): string | null {
  if (text === '') return null;
  for (const part of text.split(',')) {
    const fault = faultOfPart(part, minor >= STRICT_SINCE);
    if (fault !== null) return `${quoteValue(part)} ${fault}`;
  }
  return null;
}

function faultOfPart(part: string, strict: boolean): string | null {
  const dash = part.indexOf('-');
  if (dash === -1) return parseInteger(part) === null ? 'is not a CPU number' : null;
  if (!strict && part.indexOf('-', dash + 1) !== -1) return null;
  const [start, end] = [parseInteger(part.slice(0, dash)), parseInteger(part.slice(dash + 1))];
  if (start === null || end === null) return 'is not a range of CPUs';
  return strict && start > end ? 'is a range whose end is below its start' : null;
}

/** Like Go's Atoi: a sign is allowed. */
function parseInteger(text: string): bigint | null {
  if (!/^[+-]?[0-9]+$/.test(text) || text.length > 1000) return null;
  const value = BigInt(text.replace(/^\+/, ''));
  return value <= MAX_INT && value >= -MAX_INT - 1n ? value : null;
}
