import { parseQuantity, quantitySign } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { entriesAt, textAt } from '../documents/values.ts';
import { type Finding, type Rule, type RuleFacts, unknownEnumValue } from './rule.ts';

/** A policy option with the minors of its alpha, beta and stable stages. */
interface PolicyOption {
  readonly name: string;
  readonly alpha?: Minor;
  readonly beta?: Minor;
  readonly stable?: Minor;
}

/** @see kubernetes/kubernetes pkg/kubelet/cm/cpumanager/policy_options.go (1.22 to 1.36) */
const CPU_OPTIONS: readonly PolicyOption[] = [
  { name: 'full-pcpus-only', alpha: 22, beta: 23, stable: 33 },
  { name: 'distribute-cpus-across-numa', alpha: 23, beta: 33 },
  { name: 'align-by-socket', alpha: 25 },
  { name: 'distribute-cpus-across-cores', alpha: 31 },
  { name: 'strict-cpu-reservation', alpha: 32, beta: 33, stable: 35 },
  { name: 'prefer-align-cpus-by-uncorecache', alpha: 32, beta: 34, stable: 36 },
];

/** @see kubernetes/kubernetes pkg/kubelet/cm/topologymanager/policy_options.go (1.26 to 1.36) */
const TOPOLOGY_OPTIONS: readonly PolicyOption[] = [
  { name: 'prefer-closest-numa-nodes', alpha: 26, beta: 28, stable: 32 },
  { name: 'max-allowable-numa-nodes', beta: 31, stable: 35 },
];

/** The CPU and topology managers reject their policy or its options: the kubelet exits at startup. */
export const MANAGER_STARTUP_RULES: readonly Rule[] = [
  { id: 'KUBELET_START_CPU_MANAGER', check: checkCpuPolicy },
  {
    id: 'KUBELET_START_CPU_OPTIONS',
    since: 22,
    check: (facts) => {
      const options = entriesAt(facts.config, 'cpuManagerPolicyOptions');
      if (options.length === 0) return [];
      if (textAt(facts.config, 'cpuManagerPolicy') !== 'static') {
        const message = 'the options need cpuManagerPolicy: static';
        return [
          {
            path: 'cpuManagerPolicyOptions',
            near: ['cpuManagerPolicy'],
            message,
            hint: 'Set cpuManagerPolicy: static, or remove the options',
          },
        ];
      }
      return checkOptions('CPUManagerPolicy', CPU_OPTIONS, facts);
    },
  },
  {
    id: 'KUBELET_START_TOPOLOGY_OPTIONS',
    since: 26,
    check: (facts) =>
      textAt(facts.config, 'topologyManagerPolicy') === 'none' ? [] : checkOptions('TopologyManagerPolicy', TOPOLOGY_OPTIONS, facts),
  },
];

function checkCpuPolicy({ config }: RuleFacts): readonly Finding[] {
  const path = 'cpuManagerPolicy';
  const policy = textAt(config, path);
  const known = ['none', 'static'];
  if (!known.includes(policy)) return policy === '' ? [] : [{ path, ...unknownEnumValue(policy, known) }];
  if (policy !== 'static' || textAt(config, 'reservedSystemCPUs') !== '') return [];
  const isReserved = ['kubeReserved', 'systemReserved'].some((field) =>
    entriesAt(config, field).some(([resource, value]) => {
      const quantity = resource === 'cpu' ? parseQuantity(String(value)) : null;
      return quantity !== null && quantitySign(quantity) === 1;
    }),
  );
  if (isReserved) return [];
  const hint = 'Set reservedSystemCPUs, or cpu in kubeReserved or systemReserved';
  return [
    {
      path,
      near: ['reservedSystemCPUs', 'kubeReserved', 'systemReserved'],
      message: 'static requires a CPU reservation',
      hint,
    },
  ];
}

function checkOptions(
  owner: 'CPUManagerPolicy' | 'TopologyManagerPolicy',
  options: readonly PolicyOption[],
  facts: RuleFacts,
): readonly Finding[] {
  const field = owner === 'CPUManagerPolicy' ? 'cpuManagerPolicyOptions' : 'topologyManagerPolicyOptions';
  return entriesAt(facts.config, field).flatMap(([name, value]): Finding[] => {
    const path = `${field}[${name}]`;
    const option = options.find((known) => known.name === name);
    const stage = option === undefined ? null : stageOf(option, facts.minor);
    if (option === undefined || stage === null) {
      const known = options.filter((other) => stageOf(other, facts.minor) !== null).map((other) => other.name);
      return [{ path, ...unknownEnumValue(name, known) }];
    }
    const gate = stage === 'stable' ? null : `${owner}${stage === 'alpha' ? 'Alpha' : 'Beta'}Options`;
    if (gate !== null && facts.catalogue.gate(gate, facts.minor) !== null && !facts.gates.isEnabled(gate))
      return [
        {
          path,
          near: [`featureGates[${gate}]`],
          message: `needs the feature gate ${gate}, which is off`,
          hint: `Set featureGates.${gate} to true`,
        },
      ];
    const fault = name === 'max-allowable-numa-nodes' ? faultOfNodeCount(String(value)) : faultOfBoolean(String(value));
    return fault === null ? [] : [{ path, message: `${quoteValue(String(value))} ${fault}` }];
  });
}

function stageOf({ alpha, beta, stable }: PolicyOption, minor: Minor): 'alpha' | 'beta' | 'stable' | null {
  if (stable !== undefined && minor >= stable) return 'stable';
  if (beta !== undefined && minor >= beta) return 'beta';
  return alpha !== undefined && minor >= alpha ? 'alpha' : null;
}

function faultOfBoolean(text: string): string | null {
  return /^(?:1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)$/.test(text) ? null : 'is neither true nor false';
}

/** The maximum number of NUMA nodes of the topology manager by default. */
const LEAST_NODES = 8;

function faultOfNodeCount(text: string): string | null {
  if (!/^[+-]?[0-9]{1,18}$/.test(text)) return 'is not an integer';
  return Number(text) < LEAST_NODES ? `is less than ${LEAST_NODES}` : null;
}
