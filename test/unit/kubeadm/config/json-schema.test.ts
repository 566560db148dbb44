import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseSource } from '../../../../src/codec/source.ts';
import { CONFIG_KINDS } from '../../../../src/kubeadm/config/document-header.ts';
import { configJsonSchema } from '../../../../src/kubeadm/config/json-schema.ts';
import { loadConfig } from '../../../../src/kubeadm/config/load.ts';
import { printDefaults } from '../../../../src/kubeadm/config/print.ts';
import { NEWEST_MINOR, OLDEST_KNOWN_MINOR } from '../../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { decodeKubeletConfiguration } from '../../../../src/kubelet/documents/decode.ts';
import { NO_VALIDATOR, schemaErrors } from '../../../support/json-schema-validator.ts';

const catalogue = await loadCatalogue();
const V1BETA4 = 'apiVersion: kubeadm.k8s.io/v1beta4\n';
const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

describe.skipIf(NO_VALIDATOR)('configJsonSchema', () => {
  const any = schemaErrors(configJsonSchema(catalogue, NEWEST_MINOR, null));

  it.each(['init', 'join', 'reset', 'upgrade'] as const)('accepts the defaults of %s that config print prints', (action) => {
    const text = printDefaults(action, { hostname: 'node1', kubernetesVersion: '1.36.0', kubeletConfiguration: `${KUBELET}maxPods: 10\n` });
    const documents = text.split(/^---\n/m).map((document) => parse(document) as { readonly kind: string });
    expect(documents.length).toBeGreaterThan(0);
    expect(documents.flatMap(any)).toEqual([]);
  });

  it.each<[string, string, boolean]>([
    [
      'a document of each version',
      `${V1BETA4}kind: InitConfiguration\nnodeRegistration: {kubeletExtraArgs: [{name: v, value: "2"}]}\n`,
      true,
    ],
    [
      'the form of v1beta3',
      'apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration: {kubeletExtraArgs: {v: "2"}}\n',
      true,
    ],
    ['the form of v1beta3 in v1beta4', `${V1BETA4}kind: InitConfiguration\nnodeRegistration: {kubeletExtraArgs: {v: "2"}}\n`, false],
    [
      'null',
      `${V1BETA4}kind: JoinConfiguration\nnodeRegistration: null\ndiscovery: {bootstrapToken: null, file: {kubeConfigPath: a}}\n`,
      true,
    ],
    ['an unknown field', `${V1BETA4}kind: ClusterConfiguration\netcd: {local: {dataDirectory: /x}}\n`, false],
    ['a wrong type', `${V1BETA4}kind: ClusterConfiguration\napiServer: {certSANs: a}\n`, false],
    ['a word of an enumeration', `${V1BETA4}kind: ClusterConfiguration\nencryptionAlgorithm: ECDSA-P256\n`, true],
    ['another word', `${V1BETA4}kind: ClusterConfiguration\nencryptionAlgorithm: ED25519\n`, false],
    ['an unknown kind', `${V1BETA4}kind: InitConfig\n`, false],
    ['an unknown version', 'apiVersion: kubeadm.k8s.io/v1\nkind: InitConfiguration\n', false],
    ['a field of a kubelet', `${KUBELET}maxPods: 60\nevictionHard: {memory.available: 100Mi}\nsyncFrequency: 1m\n`, true],
    ['an unknown field of a kubelet', `${KUBELET}maxPod: 60\n`, false],
    ['a template, which only fleet files have', `${KUBELET}maxPods: "{{ pods }}"\n`, false],
  ])('agrees with the reader about %s', (_, text, isValid) => {
    const { kubelet, problems } = loadConfig(text, 'f', { kinds: CONFIG_KINDS, check: 'structure' });
    const decoded = kubelet === undefined ? [] : decodeKubeletConfiguration(kubelet, { catalogue, minor: NEWEST_MINOR }).problems;
    const errors = [...problems, ...decoded].filter(({ severity }) => severity !== 'warning');
    expect([any(parse(text)), errors.map(({ code }) => code)].map(({ length }) => length === 0)).toEqual([isValid, isValid]);
  });

  it('has the fields of each kubelet version', () => {
    for (let minor = OLDEST_KNOWN_MINOR; minor <= NEWEST_MINOR; minor += 1) {
      const errors = schemaErrors(configJsonSchema(catalogue, minor, 'KubeletConfiguration'));
      const fields = [...catalogue.fields.keys()].filter((path) => !/[.[]/.test(path));
      const accepted = fields.filter((path) => errors({ ...parse(KUBELET), [path]: null }).length === 0);
      const decoded = fields.filter((path) => {
        const [document] = parseSource(`${KUBELET}${path}: null\n`, 'f').documents;
        return document !== undefined && decodeKubeletConfiguration(document, { catalogue, minor }).problems.length === 0;
      });
      expect(accepted).toEqual(decoded);
    }
  });

  it('of one kind refuses others', () => {
    const errors = schemaErrors(configJsonSchema(catalogue, NEWEST_MINOR, 'KubeletConfiguration'));
    expect(errors(parse(`${V1BETA4}kind: InitConfiguration\n`))).not.toEqual([]);
  });
});
