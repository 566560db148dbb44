import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { explain } from '../../../../src/kubeadm/explain/explain.ts';
import type { ExplainOptions } from '../../../../src/kubeadm/explain/explanation.ts';
import { fieldsOfGate, gatesOfField } from '../../../../src/kubeadm/explain/field-gates.ts';
import { renderExplanation } from '../../../../src/kubeadm/explain/render-explanation.ts';
import { NEWEST_MINOR, parseMinor } from '../../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';

const catalogue = await loadCatalogue();

function options(version = '1.36', change: Partial<ExplainOptions> = {}): ExplainOptions {
  return { catalogue, minor: parseMinor(version) as number, ...change };
}

describe('explain, printed', () => {
  it.each<[string, string, string, boolean?]>([
    ['max-pods', 'maxPods', '1.36'],
    ['eviction-hard-1.25', 'evictionHard[memory.available]', '1.25'],
    ['flush-frequency-1.27', 'logging.flushFrequency', '1.27'],
    ['swap-behavior-1.29', 'memorySwap.swapBehavior', '1.29'],
    ['sanitization-removed', 'logging.sanitization', '1.36'],
    ['memory-swap-not-yet', 'memorySwap', '1.21'],
    ['register-with-taints', 'registerWithTaints[0]', '1.36'],
    ['authentication-recursive', 'authentication', '1.36', true],
    ['eviction-matches', 'eviction', '1.36'],
    ['flag-node-ip', '--node-ip', '1.36'],
    ['flag-removed', '--pod-infra-container-image=x', '1.35'],
    ['flag-before-its-field', '--register_with_taints', '1.22'],
    ['gate-node-swap', 'NodeSwap', '1.29'],
    ['gate-removed', 'DynamicKubeletConfig', '1.36'],
  ])('%s', async (file, name, version, recursive = false) => {
    const text = renderExplanation(explain(name, options(version, { recursive })));
    await expect(text).toMatchFileSnapshot(path.join(import.meta.dirname, 'golden', `${file}.txt`));
  });
});

describe('explain', () => {
  it('returns the content of the text as structured data', () => {
    expect(explain('clusterDomain', options('1.30'))).toMatchObject({
      kind: 'Field',
      path: 'clusterDomain',
      kubernetesVersion: '1.30',
      known: true,
      type: 'string',
      default: null,
      kubeadm: { value: 'cluster.local', source: 'networking.dnsDomain' },
      flag: { name: 'cluster-domain', known: true, deprecation: 'use-config-file' },
    });
  });

  it('supports every field of every minor version, and every flag and gate', () => {
    for (const name of catalogue.fields.keys()) expect(explain(name, options())).toMatchObject({ kind: 'Field', path: name });
    for (const { flag, since } of catalogue.flags.values())
      expect(explain(`--${flag}`, options(`1.${since}`))).toMatchObject({ kind: 'Flag', name: flag, known: true });
    for (const name of catalogue.gates.keys()) expect(explain(name, options())).toMatchObject({ kind: 'FeatureGate', name });
  });

  it('lists all top-level fields without a name', () => {
    const list = explain('', options('1.21'));
    if (list.kind !== 'FieldList') throw new Error(list.kind);
    const top = [...catalogue.fields.keys()].filter((name) => !name.includes('.') && catalogue.field(name, 21) !== null);
    expect(list.members.map((member) => member.path)).toEqual(top);
  });

  it.each([
    ['maxPodz', 'maxPods'],
    ['authentication.anonymus.enabled', 'authentication.anonymous.enabled'],
    ['NodeSwp', 'NodeSwap'],
    ['--max-pds', '--max-pods'],
    ['--max_pds=5', '--max-pods'],
  ])('suggests for %s the name %s', (name, guess) => {
    expect(() => explain(name, options())).toThrow(`Did you mean ${guess}? [EXPLAIN_UNKNOWN_NAME]`);
  });

  it.each<[string, object]>([
    ['MaxPods', { kind: 'Matches', fields: [{ path: 'maxPods' }], flags: [{ name: 'max-pods', field: 'maxPods' }] }],
    ['x509.clientCAFile', { kind: 'Field', path: 'authentication.x509.clientCAFile' }],
    ['nodeswap', { kind: 'FeatureGate', name: 'NodeSwap' }],
    ['anonymous.e', { kind: 'Field', path: 'authentication.anonymous.enabled' }],
  ])('searches the names for %s', (name, found) => {
    expect(explain(name, options())).toMatchObject(found);
  });

  it('searches only the names of the version', () => {
    const flags = (version: string): readonly string[] => {
      const found = explain('dynamic', options(version));
      return found.kind === 'Matches' ? found.flags.map(({ name }) => name) : [];
    };
    expect(flags('1.23')).toEqual(['dynamic-config-dir']);
    expect(flags('1.36')).toEqual([]);
  });

  it('has no suggestion without a similar name', () => {
    expect(() => explain('zzzzzzzzzzzz', options())).toThrow('To list the fields, run kubeletadm config explain');
  });
});

describe('rules of fields', () => {
  it.each<[string, string, readonly string[]]>([
    ['healthzPort', '1.36', ['must be a port from 1 to 65535, or 0 to disable it']],
    ['containerLogMaxFiles', '1.36', ['must be 2 or more']],
    ['containerLogMaxFiles', '1.32', ['must be 2 or more; otherwise the kubelet fails at startup']],
    ['systemReserved', '1.30', ['each name must be cpu, memory, ephemeral-storage or pid; otherwise the kubelet fails at startup']],
    ['cpuCFSQuotaPeriod', '1.36', ['must be from 1ms to 1s']],
    ['memorySwap.swapBehavior', '1.36', ['must be LimitedSwap or NoSwap']],
    ['cgroupDriver', '1.30', ['must be systemd or cgroupfs; otherwise the kubelet fails at startup']],
    [
      'shutdownGracePeriodCriticalPods',
      '1.30',
      ['must be 0s or at least 1s', 'must be at most shutdownGracePeriod, which includes this period'],
    ],
    ['resolvConf', '1.36', []],
  ])('%s of %s', (name, version, rules) => {
    expect(explain(name, options(version))).toMatchObject({ rules });
  });

  it('mention no probe value', () => {
    for (const version of ['1.29', '1.36']) {
      for (const name of catalogue.fields.keys()) {
        const { rules } = explain(name, options(version)) as { readonly rules: readonly string[] };
        expect(rules.filter((rule) => /no such word|a\/b|2147483648|2400h|1ns/.test(rule))).toEqual([]);
      }
    }
  });
});

describe('gates of fields', () => {
  it('exist in the catalogue in a common minor version', () => {
    for (const gate of catalogue.gates.values()) {
      for (const field of fieldsOfGate(gate.name)) {
        const minors = catalogue.fields.get(field)?.minors ?? [99, 0];
        const common = Array.from({ length: NEWEST_MINOR - 9 }, (_, i) => i + 10).filter(
          (minor) => minor >= minors[0] && minor <= minors[1] && catalogue.gate(gate.name, minor) !== null,
        );
        expect([gate.name, field, common.length > 0]).toEqual([gate.name, field, true]);
      }
    }
    const named = [...catalogue.fields.keys()].flatMap((name) => gatesOfField(name));
    expect(named.filter((name) => !catalogue.gates.has(name))).toEqual([]);
  });

  it('apply to nested fields', () => {
    expect(gatesOfField('logging.options.json.splitStream')).toEqual(['LoggingAlphaOptions']);
    expect(gatesOfField('reservedMemory[].limits')).toEqual(['MemoryManager']);
    expect(gatesOfField('maxPods')).toEqual([]);
  });
});
