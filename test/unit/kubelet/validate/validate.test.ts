import { describe, expect, it } from 'vitest';
import { formatProblem, type Problem } from '../../../../src/base/errors.ts';
import { parseSource } from '../../../../src/codec/source.ts';
import { NEWEST_MINOR } from '../../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import {
  ADVICE_RULES,
  STARTUP_RULES,
  VALIDATION_RULES,
  type ValidationOptions,
  type Verdict,
  validateKubeletConfiguration,
} from '../../../../src/kubelet/validate/validate.ts';
import { AREA_CASES } from './cases/area-cases.ts';
import { GATE_CASES } from './cases/gate-cases.ts';
import { MINOR_CASES } from './cases/minor-cases.ts';
import { NEWEST_CASES, NEWEST_STARTUP_CASES } from './cases/newest-cases.ts';
import { NUMBER_CASES } from './cases/number-cases.ts';
import { STARTUP_CASES } from './cases/startup-cases.ts';
import { WORD_CASES } from './cases/word-cases.ts';

const catalogue = await loadCatalogue();
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const VALIDATION_CASES = [...NUMBER_CASES, ...WORD_CASES, ...GATE_CASES, ...AREA_CASES, ...MINOR_CASES, ...NEWEST_CASES];

function validate(yaml: string, options: Partial<ValidationOptions> = {}): Verdict {
  const { documents, problems } = parseSource(`${HEADER}${yaml}\n`, 'k.yaml');
  expect(problems).toEqual([]);
  const [document] = documents;
  if (document === undefined) throw new Error('no document');
  return validateKubeletConfiguration(document, { minor: 36, catalogue, ...options });
}

function named(problems: readonly Problem[]): string[] {
  return problems.map(({ path, code }) => `${path} ${code}`).sort();
}

function isWarning({ severity }: Problem): boolean {
  return severity === 'warning';
}

describe('values that the kubelet refuses', () => {
  it.each(VALIDATION_CASES)('$about (1.$minor): $yaml', ({ yaml, minor, found }) => {
    const { ok, problems } = validate(yaml, { minor });
    const errors = problems.filter((problem) => !isWarning(problem));
    expect(named(errors)).toEqual([...found].sort());
    expect(ok).toBe(found.length === 0);
  });

  it('is shown by at least 300 cases of 1.21 and 1.36', () => {
    expect(VALIDATION_CASES.filter(({ minor }) => minor === 21 || minor === 36).length).toBeGreaterThan(300);
  });
});

describe('values with which the kubelet fails at startup, and other warnings', () => {
  it.each([...STARTUP_CASES, ...NEWEST_STARTUP_CASES])('$about (1.$minor): $yaml', ({ yaml, minor, found }) => {
    const { ok, problems } = validate(yaml, { minor });
    expect(named(problems)).toEqual([...found].sort());
    expect(ok).toBe(true);
  });
});

describe('the rules', () => {
  const ids = [...VALIDATION_RULES, ...STARTUP_RULES, ...ADVICE_RULES].map(({ id }) => id);
  const shown = new Set([...VALIDATION_CASES, ...STARTUP_CASES].flatMap(({ found }) => found.map((text) => text.split(' ').at(-1))));

  it.each([...new Set(ids)].filter((id) => id !== 'KUBELET_CGROUP_V1'))('%s has a case', (id) => {
    expect(shown).toContain(id);
  });

  it('find nothing in the defaults of any minor', () => {
    for (let minor = 20; minor <= 36; minor++) expect(validate('maxPods: 110', { minor }).problems).toEqual([]);
    for (let minor = 11; minor < 20; minor++)
      expect(named(validate('maxPods: 110', { minor }).problems)).toEqual([' KUBELET_RULES_OF_OTHER_MINOR']);
  });
});

describe('validateKubeletConfiguration', () => {
  it('reports position, error and hint of all problems in order', () => {
    const { problems } = validate('port: -1\nevictionHard:\n  memory.free: 1%\nfeatureGates:\n  NodeSwop: true\nmaxPods: ten');
    expect(problems.map(formatProblem)).toMatchInlineSnapshot(`
      [
        "k.yaml:3:1 port: must be a port from 1 to 65535, not -1 [KUBELET_OUT_OF_RANGE]",
        "k.yaml:5:3 evictionHard[memory.free]: must be memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available, allocatableMemory.available, containerfs.available or containerfs.inodesFree, not "memory.free"; the kubelet accepts the file but exits at startup [KUBELET_START_EVICTION_SIGNAL]",
        "k.yaml:7:3 featureGates[NodeSwop]: the feature gate "NodeSwop" is unknown: a 1.36 kubelet does not start with an unknown gate. Did you mean NodeSwap? [KUBELET_UNKNOWN_GATE]",
        "k.yaml:8:10 maxPods: must be an integer, not the string "ten" [CONFIG_WRONG_TYPE]",
      ]
    `);
  });

  it('reports the position of a given field when the error is in a default', () => {
    const { problems } = validate('maxPods: 5\nenforceNodeAllocatable:\n- pods\n- kube-reserved');
    expect(problems.map(formatProblem)).toMatchInlineSnapshot(`
      [
        "k.yaml:6:3 kubeReservedCgroup: must be set when enforceNodeAllocatable has kube-reserved. Name the control group, or remove kube-reserved. [KUBELET_RESERVED_CGROUP]",
      ]
    `);
  });

  it('drops findings that depend on an unreadable value', () => {
    expect(named(validate('imageGCHighThresholdPercent: high\nimageGCLowThresholdPercent: 90').problems)).toEqual([
      'imageGCHighThresholdPercent CONFIG_WRONG_TYPE',
    ]);
    expect(named(validate('featureGates: {NodeLogQuery: "true"}\nenableSystemLogQuery: true').problems)).toEqual([
      'featureGates[NodeLogQuery] CONFIG_WRONG_TYPE',
    ]);
  });

  it('continues after errors of strict decoding', () => {
    const yaml = 'port: -1\nnonsense: 1';
    expect(named(validate(yaml).problems)).toEqual(['nonsense CONFIG_UNKNOWN_FIELD', 'port KUBELET_OUT_OF_RANGE']);
    expect(validate('nonsense: 1').ok).toBe(false);
    expect(validate('nonsense: 1', { lenient: true })).toMatchObject({ ok: true, problems: [{ severity: 'warning' }] });
  });

  it('validates a kubelet newer than the catalogue by the newest known minor', () => {
    expect(validate('nonsense: 1\nfeatureGates: {NewThing: true}', { minor: NEWEST_MINOR + 1 })).toMatchObject({
      ok: true,
      problems: [
        { code: 'KUBELET_RULES_OF_OTHER_MINOR', severity: 'warning' },
        { code: 'CONFIG_UNKNOWN_FIELD', severity: 'warning' },
        { code: 'KUBELET_UNKNOWN_GATE', severity: 'warning' },
      ],
    });
    expect(validate('port: -1', { minor: NEWEST_MINOR + 1 }).ok).toBe(false);
  });

  it('resolves names with brackets and dots', () => {
    const { problems } = validate('featureGates: {"Wi[n.DSR": false, "]": true, "[": true, "a]b": true}\nkubeReserved: {"[.": x}');
    expect(problems.map(({ path, position }) => `${path} ${position?.line}:${position?.column}`)).toEqual([
      'featureGates[Wi[n.DSR] 3:16',
      'featureGates[]] 3:35',
      'featureGates[[] 3:46',
      'featureGates[a]b] 3:57',
      'kubeReserved[[.] 4:16',
    ]);
  });

  it('ignores the fields of a document of another kind', () => {
    const { documents } = parseSource('apiVersion: v1\nkind: KubeletConfiguration\nport: -1\n', 'k.yaml');
    const [document] = documents;
    if (document === undefined) throw new Error('no document');
    expect(named(validateKubeletConfiguration(document, { minor: 36, catalogue }).problems)).toEqual(['apiVersion CONFIG_WRONG_KIND']);
  });

  it('applies the rules of a host with cgroup v1', () => {
    const onV1 = (yaml: string, minor: number) =>
      named(validate(yaml, { minor, cgroupVersion: 1 }).problems.filter((problem) => !isWarning(problem)));
    expect(onV1('maxPods: 5', 36)).toEqual(['failCgroupV1 KUBELET_CGROUP_V1']);
    expect(onV1('failCgroupV1: false', 36)).toEqual([]);
    expect(onV1('maxPods: 5', 34)).toEqual([]);
    expect(onV1('failCgroupV1: true', 31)).toEqual(['failCgroupV1 KUBELET_CGROUP_V1']);
    expect(onV1('failCgroupV1: false\nsingleProcessOOMKill: false', 36)).toEqual(['singleProcessOOMKill KUBELET_CGROUP_V1']);
    expect(validate('singleProcessOOMKill: false\nfailCgroupV1: true').ok).toBe(true);
  });

  it('warns of flags that override fields', () => {
    const flags = [
      { name: 'max-pods', value: '50' },
      { name: 'cgroup-driver', value: 'systemd' },
      { name: 'node-ip', value: '10.0.0.1' },
    ];
    const { ok, problems } = validate('maxPods: 100\ncgroupDriver: systemd', { minor: 35, flags });
    expect(ok).toBe(true);
    expect(problems.map(formatProblem)).toMatchInlineSnapshot(`
      [
        "k.yaml:3:1 maxPods: --max-pods=50 on the kubelet's command line overrides this field. Remove the flag or the field. [FLAG_SHADOWS_FIELD]",
      ]
    `);
  });

  it('warns about changes that are unsafe on a running node', () => {
    const { ok, problems } = validate('maxPods: 50\ncgroupDriver: systemd\nkubeAPIQPS: 7', { running: { maxPods: 100 } });
    expect(ok).toBe(true);
    expect(problems.map(formatProblem)).toMatchInlineSnapshot(`
      [
        "k.yaml:3:1 maxPods: the change from 100 to 50 does not apply to running pods, or can evict them: lowering it makes running pods fail admission at restart [KUBELET_UNSAFE_LIVE]",
        "k.yaml:4:1 cgroupDriver: the change from "cgroupfs" to "systemd" can disconnect or stop a running node: needs a drain and usually a reboot; must match the runtime [KUBELET_UNSAFE_LIVE]",
      ]
    `);
  });

  it('returns the effective configuration', () => {
    expect(validate('maxPods: 5\nport: 0').effective).toMatchObject({ maxPods: 5, port: 10250, kubeAPIQPS: 50 });
  });
});
