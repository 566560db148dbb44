import { formatProblem, type Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import { namesText, sortedNames } from '../../base/text/name-ranges.ts';
import { replaceWord } from '../../base/text/replace-word.ts';

/**
 * Problems that differ only in their hosts become one, with the hosts or Nodes as ranges: `node[1:40] (40)`. The name of
 * the own host inside a text becomes `<host>`.
 */
export function foldProblems(problems: readonly Problem[]): readonly Problem[] {
  const groups = groupBy(problems, (problem) => formatProblem(withoutHost(problem)));
  return [...groups.values()].flatMap((group) => {
    const [first, ...more] = group;
    if (first === undefined) return [];
    const hosts = [...new Set(group.flatMap(({ host }) => host ?? []))];
    if (more.length === 0 || hosts.length < 2) return [first];
    return [{ ...withoutHost(first), host: `${namesText(sortedNames(hosts))} (${hosts.length})` }];
  });
}

/** `node[1:40] (40 hosts)`; one host by its name. */
export function hostsText(hosts: readonly string[], noun = 'hosts'): string {
  return hosts.length === 1 ? (hosts[0] ?? '') : `${namesText(sortedNames(hosts))} (${hosts.length} ${noun})`;
}

/** The text of a message about a host, equal for all hosts with the same message. */
export function withoutName(text: string, host: string): string {
  return replaceWord(text, host, '<host>');
}

/** The addresses in messages, which differ for each host. */
const ADDRESSES: Readonly<Record<string, RegExp>> = {
  HOST_UNREACHABLE: /^(cannot reach )\S+(?=: )/,
  HOST_AUTH_FAILED: /^()\S+(?= rejected user )/,
};

function withoutHost({ host, ...problem }: Problem): Problem {
  if (host === undefined) return problem;
  const { message, hint, code } = problem;
  const shared = ADDRESSES[code] === undefined ? message : message.replace(ADDRESSES[code], (_, before: string) => `${before}the host`);
  return { ...problem, message: withoutName(shared, host), ...(hint === undefined ? {} : { hint: withoutName(hint, host) }) };
}
