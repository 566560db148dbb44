import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/base/json.ts';
import { documentOfValue } from '../../../src/codec/document-of-value.ts';
import { parseSource, type SourceDocument, type SourceNode, sourceToExactJson } from '../../../src/codec/source.ts';
import { encodeYaml, type YamlValue } from '../../../src/codec/yaml-encode.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { decodeKubeletConfiguration } from '../../../src/kubelet/documents/decode.ts';
import { validateKubeletConfiguration } from '../../../src/kubelet/validate/validate.ts';

const catalogue = await loadCatalogue();
const HEADER = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };

function parsed(value: YamlValue): SourceDocument {
  const { documents, problems } = parseSource(encodeYaml(value), 'f');
  expect(problems).toEqual([]);
  return documents[0] as SourceDocument;
}

/** The nodes without positions and styles. */
function shape(node: SourceNode | null): unknown {
  if (node === null) return null;
  if (node.kind === 'scalar') return node.scalar.type === 'timestamp' ? { ...node.scalar, type: 'string' } : node.scalar;
  if (node.kind === 'list') return node.items.map(shape);
  return node.entries.map(({ key, value }) => [key, shape(value)]);
}

describe('documentOfValue', () => {
  it('equals the parsed text of the encoded value, in the same order', () => {
    const value = fc
      .jsonValue({ maxDepth: 4 })
      .map((json) => JSON.parse(JSON.stringify(json)) as YamlValue)
      .filter((json) => json !== null && !JSON.stringify(json).includes('\ufffd'));
    fc.assert(
      fc.property(value, (json) => {
        expect(shape(documentOfValue(json, 'f').root)).toEqual(shape(parsed(json).root));
      }),
    );
  });

  it('keeps integers beyond 2^53', () => {
    expect(sourceToExactJson(documentOfValue({ a: 9223372036854775807n }, 'f').root as SourceNode)).toEqual({ a: '9223372036854775807' });
  });

  it.each<[string, JsonObject]>([
    ['a valid configuration', { maxPods: 50, evictionHard: { 'memory.available': '5%' }, clusterDNS: ['10.96.0.10'] }],
    ['wrong types', { syncFrequency: 5, maxPods: '50', evictionHard: [], clusterDNS: 'x', registerWithTaints: [{ key: 1 }, 2] }],
    ['values out of range', { maxPods: -1, kubeAPIBurst: -1, imageGCLowThresholdPercent: 90, imageGCHighThresholdPercent: 80 }],
    ['unknown fields', { maxPodz: 1, featureGates: { Nonsense: true } }],
  ])('gets the verdict of the text: %s', (_, fields) => {
    const options = { minor: 36, catalogue } as const;
    const verdict = validateKubeletConfiguration(documentOfValue({ ...HEADER, ...fields }, 'f'), options);
    const ofText = validateKubeletConfiguration(parsed({ ...HEADER, ...fields }), options);
    expect(verdict.problems).toEqual(ofText.problems.map(({ position: _position, ...problem }) => problem));
    expect(verdict.effective).toEqual(ofText.effective);
    expect(verdict.decoded.value).toEqual(ofText.decoded.value);
  });

  it('has no positions that a message could show', () => {
    const { fields, problems } = decodeKubeletConfiguration(documentOfValue({ ...HEADER, maxPods: 'x', kubeAPIQPS: 1 }, 'f'), {
      minor: 36,
      catalogue,
    });
    expect([...fields]).toEqual([]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).not.toHaveProperty('position');
  });
});
