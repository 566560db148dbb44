import { quoteValue } from '../../codec/document-problems.ts';
import { listAt, textAt } from '../documents/values.ts';
import { unknownEnumValue } from './enum-rules.ts';
import type { Finding, Rule, RuleFacts } from './rule.ts';

const ENFORCE = 'enforceNodeAllocatable';
/** The first minor with the compressible values. */
const COMPRESSIBLE_SINCE = 32;

/** Reserved resources of the node and their enforcement. */
export const ALLOCATABLE_RULES: readonly Rule[] = [
  { id: 'KUBELET_CGROUPS_PER_QOS', until: 30, check: (facts) => checkCgroups(facts, listAt(facts.config, ENFORCE).length > 0) },
  {
    id: 'KUBELET_CGROUPS_PER_QOS',
    since: 31,
    check: (facts) =>
      checkCgroups(
        facts,
        listAt(facts.config, ENFORCE).some((item) => kindsOf(facts).includes(String(item)) && item !== 'none'),
      ),
  },
  { id: 'KUBELET_UNKNOWN_WORD', check: checkKinds },
  {
    id: 'KUBELET_ENFORCE_NONE',
    check: ({ config }) => {
      const items = listAt(config, ENFORCE);
      const index = items.indexOf('none');
      return index === -1 || items.length === 1 ? [] : [{ path: `${ENFORCE}[${index}]`, message: 'none must be the only entry' }];
    },
  },
  {
    id: 'KUBELET_ENFORCE_TWICE',
    since: 31,
    check: ({ config }) => {
      const seen = new Set<string>();
      return listAt(config, ENFORCE).flatMap((item, index): Finding[] => {
        const kind = String(item);
        if (seen.size === seen.add(kind).size) return [{ path: `${ENFORCE}[${index}]`, message: `${quoteValue(kind)} is listed twice` }];
        return [];
      });
    },
  },
  {
    id: 'KUBELET_ENFORCE_EITHER',
    since: COMPRESSIBLE_SINCE,
    check: ({ config }) =>
      ['system-reserved', 'kube-reserved'].flatMap((kind): Finding[] => {
        const items = listAt(config, ENFORCE);
        const index = items.indexOf(`${kind}-compressible`);
        if (index === -1 || !items.includes(kind)) return [];
        return [{ path: `${ENFORCE}[${index}]`, message: `cannot be combined with ${kind}`, hint: 'Keep only one of them' }];
      }),
  },
  { id: 'KUBELET_RESERVED_CGROUP', since: 15, check: (facts) => [...checkReserved('system', facts), ...checkReserved('kube', facts)] },
  {
    id: 'KUBELET_CGROUP_ROOT',
    check: ({ config }) => {
      if (textAt(config, 'systemCgroups') === '' || textAt(config, 'cgroupRoot') !== '') return [];
      return [{ path: 'systemCgroups', near: ['cgroupRoot'], message: 'needs cgroupRoot', hint: 'Set cgroupRoot, for example to /' }];
    },
  },
];

function checkCgroups({ config, given }: RuleFacts, isEnforced: boolean): readonly Finding[] {
  if (!isEnforced || config.cgroupsPerQOS !== false) return [];
  const hint = `Set cgroupsPerQOS to true, or ${ENFORCE} to []`;
  if (ENFORCE in given) return [{ path: ENFORCE, near: ['cgroupsPerQOS'], message: 'needs cgroupsPerQOS: true', hint }];
  return [{ path: 'cgroupsPerQOS', near: [ENFORCE], message: `false contradicts ${ENFORCE}, which is [pods] by default`, hint }];
}

function kindsOf({ minor }: RuleFacts): readonly string[] {
  const kinds = ['pods', 'system-reserved', 'kube-reserved', 'none'];
  return minor >= COMPRESSIBLE_SINCE ? [...kinds, 'system-reserved-compressible', 'kube-reserved-compressible'] : kinds;
}

function checkKinds(facts: RuleFacts): readonly Finding[] {
  const kinds = kindsOf(facts);
  return listAt(facts.config, ENFORCE).flatMap((item, index): Finding[] =>
    kinds.includes(String(item)) ? [] : [{ path: `${ENFORCE}[${index}]`, ...unknownEnumValue(String(item), kinds) }],
  );
}

function checkReserved(owner: 'system' | 'kube', facts: RuleFacts): readonly Finding[] {
  const path = `${owner}ReservedCgroup`;
  if (textAt(facts.config, path) !== '') return [];
  const items = listAt(facts.config, ENFORCE);
  const index = items.findIndex((item) => String(item).startsWith(`${owner}-reserved`) && kindsOf(facts).includes(String(item)));
  if (index === -1) return [];
  const message = `must be set when ${ENFORCE} has ${items[index]}`;
  return [{ path, near: [`${ENFORCE}[${index}]`], message, hint: `Name the control group, or remove ${items[index]}` }];
}
