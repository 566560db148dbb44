import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AppError } from '../../../src/base/errors.ts';
import type { JsonObject } from '../../../src/base/json.ts';
import { parseSource, sourceToJson } from '../../../src/codec/source.ts';
import { encodeYaml } from '../../../src/codec/yaml-encode.ts';
import type { KubeletReader } from '../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { decodeKubeletConfiguration } from '../../../src/kubelet/documents/decode.ts';
import { encodeKubeletConfiguration } from '../../../src/kubelet/documents/encode.ts';

const catalogue = await loadCatalogue();
const GOLDEN = path.join(import.meta.dirname, 'golden');

function golden(name: string): string {
  return readFileSync(path.join(GOLDEN, name), 'utf8');
}

function read(text: string, minor: number): JsonObject {
  const [document] = parseSource(text, 'k.yaml').documents;
  if (!document) throw new Error('no document');
  const { value, problems } = decodeKubeletConfiguration(document, { minor, catalogue });
  expect(problems).toEqual([]);
  return value;
}

function render(value: JsonObject, options: KubeletReader): string {
  return encodeYaml(encodeKubeletConfiguration(value, options), options.catalogue.configurationType(options.minor));
}

function thrownBy(run: () => unknown): AppError {
  try {
    run();
  } catch (error) {
    return error as AppError;
  }
  throw new Error('nothing was thrown');
}

describe('encodeKubeletConfiguration', () => {
  const empty = readdirSync(GOLDEN).filter((name) => name.startsWith('empty-'));

  it.each(empty)('prints an empty configuration like the struct of its minor: %s', (name) => {
    const minor = Number(/1\.(\d+)/.exec(name)?.[1]);
    expect(render({}, { minor, catalogue })).toBe(golden(name));
  });

  it.each([24, 36])('prints every field like the struct of 1.%i', (minor) => {
    expect(render(read(golden(`full-1.${minor}.input.yaml`), minor), { minor, catalogue })).toBe(golden(`full-1.${minor}.yaml`));
  });

  it.each(['defaults', 'user-configuration', 'patched'])('reproduces kubeadm’s file byte for byte: %s', (name) => {
    const text = golden(`kubeadm-1.36.2-${name}.yaml`);
    expect(render(read(text, 36), { minor: 36, catalogue })).toBe(text);
  });

  it('is stable after one round trip', () => {
    const value = read(golden('full-1.36.input.yaml'), 36);
    const once = encodeKubeletConfiguration(value, { minor: 36, catalogue });
    expect(encodeKubeletConfiguration(once, { minor: 36, catalogue })).toEqual(once);
  });

  it('sorts keys, adds the header and omits fields that the minor does not have', () => {
    const encoded = encodeKubeletConfiguration({ maxPods: 5, address: 'x', memorySwap: {}, foo: 1 }, { minor: 21, catalogue });
    expect(Object.keys(encoded)).toEqual(Object.keys(encoded).toSorted());
    expect(encoded).toMatchObject({ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', maxPods: 5, address: 'x' });
    expect(encoded).not.toHaveProperty('memorySwap');
    expect(encoded).not.toHaveProperty('foo');
  });

  it('keeps an explicit zero of a pointer field and drops others', () => {
    const encoded = encodeKubeletConfiguration(
      {
        healthzPort: 0,
        failSwapOn: false,
        resolvConf: '',
        port: 0,
        rotateCertificates: false,
        clusterDomain: '',
        clusterDNS: [],
        kubeReserved: {},
      },
      { minor: 36, catalogue },
    );
    expect(encoded).toMatchObject({ healthzPort: 0, failSwapOn: false, resolvConf: '' });
    for (const name of ['port', 'rotateCertificates', 'clusterDomain', 'clusterDNS', 'kubeReserved'])
      expect(encoded).not.toHaveProperty(name);
    expect(encodeKubeletConfiguration({ resolvConf: '' }, { minor: 22, catalogue })).not.toHaveProperty('resolvConf');
  });

  it('normalises durations, quantities and times', () => {
    const encoded = encodeKubeletConfiguration(
      {
        syncFrequency: '90s',
        reservedMemory: [{ limits: { memory: '2048Mi' } }],
        registerWithTaints: [{ key: 'a', timeAdded: '2026-01-01T01:00:00+01:00' }],
      },
      { minor: 36, catalogue },
    );
    expect(encoded).toMatchObject({
      syncFrequency: '1m30s',
      reservedMemory: [{ numaNode: 0, limits: { memory: '2Gi' } }],
      registerWithTaints: [{ effect: '', key: 'a', timeAdded: '2026-01-01T00:00:00Z' }],
    });
  });

  it('keeps integers exact that JavaScript numbers cannot represent', () => {
    const value = read('apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxOpenFiles: 9223372036854775807\n', 36);
    expect(encodeKubeletConfiguration(value, { minor: 36, catalogue }).maxOpenFiles).toBe('9223372036854775807');
    expect(render(value, { minor: 36, catalogue })).toContain('\nmaxOpenFiles: 9223372036854775807\n');
  });

  it('refuses values of another type, all at once', () => {
    const wrong = { maxPods: 'many', clusterDNS: 'x', evictionHard: ['a'], authentication: 5, syncFrequency: 10, address: ['x'] };
    expect(
      thrownBy(() => encodeKubeletConfiguration(wrong, { minor: 36, catalogue })).problems.map(({ path: at, code }) => `${at} ${code}`),
    ).toEqual([
      'address CONFIG_WRONG_TYPE',
      'authentication CONFIG_WRONG_TYPE',
      'clusterDNS CONFIG_WRONG_TYPE',
      'evictionHard CONFIG_WRONG_TYPE',
      'maxPods CONFIG_WRONG_TYPE',
      'syncFrequency CONFIG_INVALID_DURATION',
    ]);
  });

  it('ignores the prototype of its input', () => {
    const value = JSON.parse('{"kubeReserved": {"__proto__": "1"}, "__proto__": {"maxPods": 5}}') as JsonObject;
    const encoded = encodeKubeletConfiguration(value, { minor: 36, catalogue });
    expect(encoded).not.toHaveProperty('maxPods');
    expect(Object.entries(encoded.kubeReserved ?? {})).toEqual([['__proto__', '1']]);
    expect(encodeYaml({ a: encoded.kubeReserved ?? null })).toBe('a:\n  __proto__: "1"\n');
  });

  it('prints text that decodes to the same value', () => {
    const text = golden('full-1.36.yaml');
    const [document] = parseSource(text, 'k.yaml').documents;
    const encoded = encodeKubeletConfiguration(read(text, 36), { minor: 36, catalogue });
    // The number beyond 2^53 stays a string in JSON.
    const expected = { ...encoded, podPidsLimit: Number(encoded.podPidsLimit) };
    expect(document?.root && sourceToJson(document.root)).toEqual(expected);
  });
});
