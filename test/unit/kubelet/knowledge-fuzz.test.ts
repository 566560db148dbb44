import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Arg } from '../../../src/base/arg.ts';
import { AppError } from '../../../src/base/errors.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { encodeYaml, type YamlValue } from '../../../src/codec/yaml-encode.ts';
import { execStartWords } from '../../../src/host/systemd/exec-start.ts';
import { explain } from '../../../src/kubeadm/explain/explain.ts';
import { renderExplanation } from '../../../src/kubeadm/explain/render-explanation.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../src/kubelet/defaults/effective-configuration.ts';
import { type ConfigSide, diffConfigs } from '../../../src/kubelet/diff/diff-configs.ts';
import { layerRunningConfig } from '../../../src/kubelet/effective/running-config.ts';
import { parseCommandLine } from '../../../src/kubelet/flags/command-line.ts';
import { migrateKubelet } from '../../../src/kubelet/migrate/migrate-kubelet.ts';

const catalogue = await loadCatalogue();
const NAMES = [...catalogue.fields.keys()].filter((name) => !name.includes('.') && !name.includes('['));
const FLAGS = [...catalogue.flags.keys()];
const HEADER = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };

const minor = fc.integer({ min: 20, max: 36 });
const WORDS = ['', 'a', 'none', 'static', '10.0.0.1', '/x', 'relative/y', '0-1'];
const DURATIONS = ['0s', '10s', '1h30m', '-1s', '90s'];
/** Values of the right type, valid or not. */
const BY_TYPE: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  bool: fc.boolean(),
  int32: fc.constantFrom(-1, 0, 1, 50, 10250),
  int64: fc.constantFrom(-1, 0, 1, 5_000_000_000),
  uint32: fc.constantFrom(0, 4),
  float: fc.constantFrom(0, 0.5, 1),
  string: fc.constantFrom(...WORDS),
  enum: fc.constantFrom(...WORDS),
  duration: fc.constantFrom(...DURATIONS),
  'array<string>': fc.array(fc.constantFrom(...WORDS), { maxLength: 2 }),
  'array<enum>': fc.array(fc.constantFrom('pods', 'none', 'kube-reserved'), { maxLength: 2 }),
  'map<string,string>': fc.dictionary(fc.constantFrom('cpu', 'memory', 'memory.available'), fc.constantFrom('1', '1Gi', '5%'), {
    maxKeys: 2,
  }),
  'map<string,bool>': fc.dictionary(
    fc.constantFrom('NodeSwap', 'CSIMigration', 'AllAlpha', 'NoSuchGate', 'DynamicKubeletConfig'),
    fc.boolean(),
  ),
  object: fc.constant({}),
};
const field = fc.constantFrom(...NAMES).chain((name) => {
  const typed = BY_TYPE[catalogue.fields.get(name)?.type ?? ''] ?? fc.constant(null);
  return fc
    .oneof({ weight: 20, arbitrary: typed }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) })
    .map((one): [string, unknown] => [name, one]);
});
const nested = fc.constantFrom<[string, unknown]>(
  ['logging', { format: 'json', sanitization: false, flushFrequency: '5s' }],
  ['logging', { flushFrequency: 5_000_000_000, verbosity: 2 }],
  ['authentication', { anonymous: { enabled: true }, x509: { clientCAFile: 'ca.crt' } }],
  ['memorySwap', { swapBehavior: 'UnlimitedSwap' }],
);
const config = fc
  .array(fc.oneof(field, nested), { maxLength: 8 })
  .map((fields) => ({ ...Object.fromEntries(fields), ...HEADER }) as JsonObject);
const words = fc.array(
  fc.oneof(
    fc
      .tuple(fc.constantFrom(...FLAGS), fc.oneof(fc.string(), fc.constantFrom('5', 'true', 'a=b', '10s', 'memory.available<5%')))
      .map(([name, text]) => `--${name}=${text}`),
    fc.string(),
  ),
  { maxLength: 6 },
);
const text = fc.oneof(
  { weight: 6, arbitrary: config.map((one) => encodeYaml(one as YamlValue)) },
  fc.string(),
  fc.tuple(config, fc.nat(), fc.string()).map(([one, at, noise]) => {
    const whole = encodeYaml(one as YamlValue);
    return whole.slice(0, at % whole.length) + noise + whole.slice(at % whole.length);
  }),
);

/** Any error other than an AppError is a bug. */
function survives(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    expect(error.problems.length).toBeGreaterThan(0);
  }
}

describe('with arbitrary input', () => {
  it('explain returns a result, or names the unknown field', () => {
    fc.assert(
      fc.property(fc.string(), minor, (name, m) => survives(() => renderExplanation(explain(name, { catalogue, minor: m })))),
      { numRuns: 30 },
    );
  });

  it('the layers of a host are merged, or an error is reported', () => {
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 2 }), words, minor, (file, dropIns, line, m) =>
        survives(() => {
          const options = { catalogue, minor: m };
          const { flags } = parseCommandLine(line, options);
          const { layered } = layerRunningConfig({
            ...options,
            configFile: { path: '/c.yaml', text: file },
            dynamicConfig: null,
            dropIns: dropIns.map((one, i) => ({ path: `/d/${i}.conf`, text: one })),
            flags: flags.map((flag) => ({ ...flag, source: 'x' })),
          });
          // The effective configuration needs no further defaults and does not differ from itself.
          const side = { name: 'a', minor: m, config: layered.config };
          expect(diffConfigs(side, side, catalogue).differences).toEqual([]);
        }),
      ),
      { numRuns: 60 },
    );
  });

  it('a file is migrated idempotently, or an error is reported', () => {
    fc.assert(
      fc.property(text, words, minor, minor, (file, line, from, to) =>
        survives(() => {
          const { flags } = parseCommandLine(line, { catalogue, minor: from });
          const once = migrateKubelet(file, 'f', { from, to, catalogue, flags, keepDefaults: false });
          const twice = migrateKubelet(once.text, 'f', { from: to, to, catalogue, flags: [], keepDefaults: false });
          expect(twice.text).toBe(once.text);
        }),
      ),
      { numRuns: 60 },
    );
  });

  it('a migration reports every effective change', () => {
    fc.assert(
      fc.property(config, words, minor, minor, (one, line, from, to) =>
        survives(() => {
          const text = encodeYaml(one as YamlValue);
          const { flags } = parseCommandLine(line, { catalogue, minor: from });
          const { steps, text: migrated, flags: kept } = migrateKubelet(text, 'f', { from, to, catalogue, flags, keepDefaults: false });
          const inForce = (file: string, given: readonly Arg[], m: number): ConfigSide => {
            const placed = given.map((flag) => ({ ...flag, source: 'x' }));
            const configFile = { path: '/f', text: file };
            const { layered } = layerRunningConfig({ catalogue, minor: m, configFile, dynamicConfig: null, dropIns: [], flags: placed });
            return { name: 'a', minor: m, config: layered.config };
          };
          const { differences } = diffConfigs(inForce(text, flags, from), inForce(migrated, kept, to), catalogue);
          // Flags without a field in the old kubelet, and flags with a value that its file cannot express, cannot be compared.
          const fieldless = flags.flatMap(({ name, value }) => {
            const flag = catalogue.flag(name, from);
            const isEmpty = value === '' || /^[0s]+$/.test(value) || value === 'false';
            return flag !== null && (flag.field === null || isEmpty) && flag.entry.field !== null ? [flag.entry.field] : [];
          });
          const reported = [...fieldless, ...steps.map(({ what }) => what.replace(/^featureGates\.(.*)$/, 'featureGates[$1]'))];
          const silent = differences.filter(
            ({ path }) => !reported.some((what) => path === what || path.startsWith(`${what}.`) || path.startsWith(`${what}[`)),
          );
          expect(silent.map(({ path, before, after }) => [path, before.value, after.value])).toEqual([]);
        }),
      ),
      { numRuns: 60 },
    );
  });

  it('adding defaults is idempotent', () => {
    fc.assert(
      fc.property(minor, fc.boolean(), (m, merge) => {
        const once = effectiveConfiguration({ mergeDefaultEvictionSettings: merge }, { minor: m, catalogue });
        expect(effectiveConfiguration(once, { minor: m, catalogue })).toEqual(once);
      }),
    );
  });

  it('a unit file is expanded to arguments', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (unit, env) => {
        execStartWords([{ path: '/u', text: `[Service]\nExecStart=${unit}\n` }], [{ path: '/e', text: env }]);
      }),
    );
  });
});
