import { quoteValue } from '../../codec/document-problems.ts';
import { formatMinor, type Minor } from '../catalogue/catalogue.ts';
import type { GateFault } from '../catalogue/feature-gates.ts';
import { durationAt, entriesAt, isTrue, listAt, textAt, valueAt } from '../documents/values.ts';
import type { Finding, NamedFinding, Rule, RuleFacts } from './rule.ts';

/** A field that is rejected while a gate is off. */
interface GatedField {
  readonly path: string;
  readonly gate: string;
  readonly since?: Minor;
  readonly until?: Minor;
  /** The values that need the gate, in words. */
  readonly what: string;
  readonly isUsed: (facts: RuleFacts) => boolean;
}

const GATED: readonly GatedField[] = [
  {
    path: 'cpuCFSQuotaPeriod',
    gate: 'CustomCPUCFSQuotaPeriod',
    since: 20,
    what: 'a value other than 100ms',
    isUsed: ({ config }) => durationAt(config, 'cpuCFSQuotaPeriod') !== 100_000_000n,
  },
  {
    path: 'imageMaximumGCAge',
    gate: 'ImageMaximumGCAge',
    what: 'an age',
    isUsed: ({ config }) => (durationAt(config, 'imageMaximumGCAge') ?? 0n) !== 0n,
  },
  {
    path: 'defaultPodSysctls',
    gate: 'DefaultPodSysctls',
    what: 'a sysctl',
    isUsed: ({ config }) => entriesAt(config, 'defaultPodSysctls').length > 0,
  },
  {
    path: 'rotateCertificates',
    gate: 'RotateKubeletClientCertificate',
    until: 18,
    what: 'true',
    isUsed: ({ config }) => isTrue(config, 'rotateCertificates'),
  },
  {
    path: 'serverTLSBootstrap',
    gate: 'RotateKubeletServerCertificate',
    what: 'true',
    isUsed: ({ config }) => isTrue(config, 'serverTLSBootstrap'),
  },
  {
    path: 'topologyManagerPolicy',
    gate: 'TopologyManager',
    until: 26,
    what: 'a value other than none',
    isUsed: ({ config }) => textAt(config, 'topologyManagerPolicy') !== 'none',
  },
  {
    path: 'topologyManagerScope',
    gate: 'TopologyManager',
    until: 26,
    what: 'a value other than container',
    isUsed: ({ config }) => textAt(config, 'topologyManagerScope') !== 'container',
  },
  ...['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods'].map((path) => ({
    path,
    gate: 'GracefulNodeShutdown',
    what: 'a period',
    isUsed: ({ config }: RuleFacts) => (durationAt(config, path) ?? 0n) > 0n,
  })),
  {
    path: 'shutdownGracePeriodByPodPriority',
    gate: 'GracefulNodeShutdownBasedOnPodPriority',
    what: 'periods',
    isUsed: ({ config }) => listAt(config, 'shutdownGracePeriodByPodPriority').length > 0,
  },
  {
    path: 'memorySwap.swapBehavior',
    gate: 'NodeSwap',
    what: 'a behavior',
    isUsed: ({ config }) => textAt(config, 'memorySwap.swapBehavior') !== '',
  },
  {
    path: 'crashLoopBackOff.maxContainerRestartPeriod',
    gate: 'KubeletCrashLoopBackOffMax',
    what: 'a period',
    isUsed: ({ config }) => valueAt(config, 'crashLoopBackOff.maxContainerRestartPeriod') !== undefined,
  },
  {
    path: 'imagePullCredentialsVerificationPolicy',
    gate: 'KubeletEnsureSecretPulledImages',
    what: 'a policy',
    isUsed: ({ config }) => textAt(config, 'imagePullCredentialsVerificationPolicy') !== '',
  },
  {
    path: 'preloadedImagesVerificationAllowlist',
    gate: 'KubeletEnsureSecretPulledImages',
    what: 'images',
    isUsed: ({ config }) => listAt(config, 'preloadedImagesVerificationAllowlist').length > 0,
  },
  {
    path: 'logging.format',
    gate: 'LoggingBetaOptions',
    since: 25,
    what: 'json',
    isUsed: ({ config }) => textAt(config, 'logging.format') === 'json',
  },
  ...['json', 'text'].flatMap((format) => [
    {
      path: `logging.options.${format}.splitStream`,
      gate: 'LoggingAlphaOptions',
      since: 25,
      what: 'true',
      isUsed: ({ config }: RuleFacts) => isTrue(config, `logging.options.${format}.splitStream`),
    },
    {
      path: `logging.options.${format}.infoBufferSize`,
      gate: 'LoggingAlphaOptions',
      since: 25,
      what: 'a size',
      isUsed: ({ config }: RuleFacts) => !['', '0'].includes(textAt(config, `logging.options.${format}.infoBufferSize`)),
    },
  ]),
  {
    path: 'tracing',
    gate: 'KubeletTracing',
    until: 33,
    what: 'the field',
    isUsed: ({ config }) => valueAt(config, 'tracing') !== undefined,
  },
  {
    path: 'memoryReservationPolicy',
    gate: 'MemoryQoS',
    what: 'TieredReservation',
    isUsed: ({ config }) => textAt(config, 'memoryReservationPolicy') === 'TieredReservation',
  },
  { path: 'enableSystemLogQuery', gate: 'NodeLogQuery', what: 'true', isUsed: ({ config }) => isTrue(config, 'enableSystemLogQuery') },
];

/** Fields that need a feature gate. */
export const GATED_FIELD_RULES: readonly Rule[] = GATED.map(({ path, gate, since, until, what, isUsed }) => ({
  id: 'KUBELET_NEEDS_GATE',
  ...(since !== undefined && { since }),
  ...(until !== undefined && { until }),
  check: (facts) => {
    if (facts.catalogue.field(path, facts.minor) === null || facts.gates.isEnabled(gate) || !isUsed(facts)) return [];
    return [{ path, ...gateIsOff(gate, what, facts) }];
  },
}));

function gateIsOff(name: string, what: string, { catalogue, minor, given }: RuleFacts): Pick<Finding, 'message' | 'hint' | 'near'> {
  const near = [`featureGates[${name}]`];
  const gate = catalogue.gate(name, minor);
  if (gate === null)
    return { message: `${what} needs the feature gate ${name}, which a ${formatMinor(minor)} kubelet does not have`, near };
  const isSetOff = entriesAt(given, 'featureGates').some(([key, value]) => key === name && value === false);
  const why = isSetOff ? 'which featureGates disables' : 'which is off';
  const hint = isSetOff ? `Remove featureGates.${name}, or the field` : `Set featureGates.${name} to true, or remove the field`;
  return { message: `${what} needs the feature gate ${name}, ${why}`, hint, near };
}

/** Errors of the feature gates themselves, with which the kubelet rejects the whole configuration. */
export function gateFindings(faults: readonly GateFault[], { minor, catalogue }: RuleFacts): readonly NamedFinding[] {
  if (faults.length === 0) return [];
  const known = [...catalogue.gates.keys()].filter((name) => catalogue.gate(name, minor) !== null);
  return faults.map((fault) => gateFinding(fault, minor, known));
}

function gateFinding(fault: GateFault, minor: Minor, known: readonly string[]): NamedFinding {
  switch (fault.kind) {
    case 'unknown':
      return { id: 'KUBELET_UNKNOWN_GATE', path: gatePath(fault.gate), ...unknownGate(fault, minor, known) };
    case 'locked': {
      const message = `is locked to ${fault.locked} in ${formatMinor(minor)}`;
      return { id: 'KUBELET_LOCKED_GATE', path: gatePath(fault.gate), message, hint: 'Remove the gate' };
    }
    case 'dependency': {
      const message = `${fault.gate} is on and needs ${fault.needs}, which is off`;
      const hint = `Set ${fault.needs} to true or ${fault.gate} to false`;
      return { id: 'KUBELET_GATE_DEPENDENCY', path: gatePath(fault.set ?? fault.gate), message, hint };
    }
  }
}

function gatePath(name: string): string {
  return `featureGates[${name}]`;
}

function unknownGate(
  { gate, history }: Extract<GateFault, { readonly kind: 'unknown' }>,
  minor: Minor,
  known: readonly string[],
): Pick<Finding, 'message' | 'hint' | 'guess'> {
  const kubelet = `a ${formatMinor(minor)} kubelet`;
  if (history !== null)
    return {
      message: `the feature gate ${quoteValue(gate)} was ${history}: ${kubelet} does not start with this gate`,
      hint: 'Remove the gate',
    };
  const message = `the feature gate ${quoteValue(gate)} is unknown: ${kubelet} does not start with an unknown gate`;
  return { message, hint: 'Remove the gate', guess: { word: gate, among: known } };
}
