import type { JsonObject } from '../../base/json.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { formatMinor, type Minor } from '../catalogue/catalogue.ts';
import type { GateFault } from '../catalogue/feature-gates.ts';
import { durationAt, entriesAt, isTrue, listAt, textAt, valueAt } from '../documents/values.ts';
import type { Finding, NamedFinding, Rule, RuleFacts } from './rule.ts';

type Uses = (config: JsonObject, path: string) => boolean;

const isSet: Uses = (config, path) => valueAt(config, path) !== undefined;
const hasText: Uses = (config, path) => textAt(config, path) !== '';
const hasItems: Uses = (config, path) => listAt(config, path).length > 0;
const hasTime: Uses = (config, path) => (durationAt(config, path) ?? 0n) > 0n;
const is =
  (...values: readonly string[]): Uses =>
  (config, path) =>
    values.includes(textAt(config, path));
const isNot =
  (...values: readonly string[]): Uses =>
  (config, path) =>
    !values.includes(textAt(config, path));

/** Fields that are rejected while a gate is off; `what`: the values that need the gate, in words. */
const GATED: readonly {
  readonly path: string;
  readonly gate: string;
  readonly what: string;
  readonly uses: Uses;
  readonly since?: Minor;
  readonly until?: Minor;
}[] = [
  {
    path: 'cpuCFSQuotaPeriod',
    gate: 'CustomCPUCFSQuotaPeriod',
    what: 'a value other than 100ms',
    uses: (config, path) => durationAt(config, path) !== 100_000_000n,
    since: 20,
  },
  {
    path: 'imageMaximumGCAge',
    gate: 'ImageMaximumGCAge',
    what: 'an age',
    uses: (config, path) => (durationAt(config, path) ?? 0n) !== 0n,
  },
  { path: 'defaultPodSysctls', gate: 'DefaultPodSysctls', what: 'a sysctl', uses: (config, path) => entriesAt(config, path).length > 0 },
  { path: 'rotateCertificates', gate: 'RotateKubeletClientCertificate', what: 'true', uses: isTrue, until: 18 },
  { path: 'serverTLSBootstrap', gate: 'RotateKubeletServerCertificate', what: 'true', uses: isTrue },
  { path: 'topologyManagerPolicy', gate: 'TopologyManager', what: 'a value other than none', uses: isNot('none'), until: 26 },
  { path: 'topologyManagerScope', gate: 'TopologyManager', what: 'a value other than container', uses: isNot('container'), until: 26 },
  { path: 'shutdownGracePeriod', gate: 'GracefulNodeShutdown', what: 'a period', uses: hasTime },
  { path: 'shutdownGracePeriodCriticalPods', gate: 'GracefulNodeShutdown', what: 'a period', uses: hasTime },
  { path: 'shutdownGracePeriodByPodPriority', gate: 'GracefulNodeShutdownBasedOnPodPriority', what: 'periods', uses: hasItems },
  { path: 'memorySwap.swapBehavior', gate: 'NodeSwap', what: 'a behavior', uses: hasText },
  { path: 'crashLoopBackOff.maxContainerRestartPeriod', gate: 'KubeletCrashLoopBackOffMax', what: 'a period', uses: isSet },
  { path: 'imagePullCredentialsVerificationPolicy', gate: 'KubeletEnsureSecretPulledImages', what: 'a policy', uses: hasText },
  { path: 'preloadedImagesVerificationAllowlist', gate: 'KubeletEnsureSecretPulledImages', what: 'images', uses: hasItems },
  { path: 'logging.format', gate: 'LoggingBetaOptions', what: 'json', uses: is('json'), since: 25 },
  ...['json', 'text'].flatMap((format) => [
    { path: `logging.options.${format}.splitStream`, gate: 'LoggingAlphaOptions', what: 'true', uses: isTrue, since: 25 },
    { path: `logging.options.${format}.infoBufferSize`, gate: 'LoggingAlphaOptions', what: 'a size', uses: isNot('', '0'), since: 25 },
  ]),
  { path: 'tracing', gate: 'KubeletTracing', what: 'the field', uses: isSet, until: 33 },
  { path: 'memoryReservationPolicy', gate: 'MemoryQoS', what: 'TieredReservation', uses: is('TieredReservation') },
  { path: 'enableSystemLogQuery', gate: 'NodeLogQuery', what: 'true', uses: isTrue },
];

/** Fields that need a feature gate. */
export const GATED_FIELD_RULES: readonly Rule[] = GATED.map(({ path, gate, what, uses, ...minors }) => ({
  id: 'KUBELET_NEEDS_GATE',
  ...minors,
  check: (facts) => {
    if (facts.catalogue.field(path, facts.minor) === null || facts.gates.isEnabled(gate) || !uses(facts.config, path)) return [];
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
  const path = `featureGates[${(fault.kind === 'dependency' ? fault.set : null) ?? fault.gate}]`;
  switch (fault.kind) {
    case 'unknown':
      return { id: 'KUBELET_UNKNOWN_GATE', path, ...unknownGate(fault, minor, known) };
    case 'locked': {
      const message = `is locked to ${fault.locked} in ${formatMinor(minor)}`;
      return { id: 'KUBELET_LOCKED_GATE', path, message, hint: 'Remove the gate' };
    }
    case 'dependency': {
      const message = `${fault.gate} is on and needs ${fault.needs}, which is off`;
      const hint = `Set ${fault.needs} to true or ${fault.gate} to false`;
      return { id: 'KUBELET_GATE_DEPENDENCY', path, message, hint };
    }
  }
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
