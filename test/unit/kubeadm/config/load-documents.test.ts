import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../src/kubeadm/config/load.ts';
import { documentOf, linesOf, load } from './support.ts';

const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 5\n';
const PROXY = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
const KINDS =
  'InitConfiguration, ClusterConfiguration, JoinConfiguration, ResetConfiguration, UpgradeConfiguration, KubeletConfiguration and KubeProxyConfiguration';
const ALLOWED = KINDS.replace(' and ', ' or ');

describe('the documents of a file', () => {
  it.each([
    ['one document', documentOf('init'), ['init']],
    [
      'several',
      `${documentOf('init')}---\n${documentOf('cluster')}---\n${KUBELET}---\n${PROXY}`,
      ['init', 'cluster', 'kubelet', 'kubeProxy'],
    ],
    ['v1beta3', `${documentOf('init3')}---\n${documentOf('cluster3')}`, ['init', 'cluster']],
    ['both versions in one file', `${documentOf('init')}---\n${documentOf('cluster3')}`, ['init', 'cluster']],
    ['a comment in front of the first marker', `# note\n---\n${documentOf('reset')}`, ['reset']],
    ['empty documents', `---\n---\n${documentOf('upgrade')}---\n---\n`, ['upgrade']],
    ['JSON', '{"apiVersion":"kubeadm.k8s.io/v1beta4","kind":"ResetConfiguration","force":true}', ['reset']],
    ['a byte order mark and CRLF', `\ufeff${documentOf('reset', 'force: true').replaceAll('\n', '\r\n')}`, ['reset']],
  ])('reads %s', (_, text, expected) => {
    const loaded = load(text);
    expect(linesOf(loaded)).toEqual([]);
    expect(['init', 'cluster', 'join', 'reset', 'upgrade', 'kubelet', 'kubeProxy'].filter((part) => part in loaded)).toEqual(expected);
  });

  it('returns KubeletConfiguration with its positions', () => {
    const { kubelet } = load(`${documentOf('init')}---\n${KUBELET}`);
    expect(kubelet?.index).toBe(1);
    expect(kubelet?.positionAt(kubelet.root?.offset ?? 0)).toEqual({ file: 'f.yaml', line: 4, column: 1 });
  });

  it('returns the version of each document', () => {
    expect([...load(`${documentOf('init')}---\n${documentOf('cluster3')}`).versions]).toEqual([
      ['InitConfiguration', 'v1beta4'],
      ['ClusterConfiguration', 'v1beta3'],
    ]);
  });

  it.each([
    [
      'nothing at all',
      '',
      [`f.yaml:1:1: the file contains no configuration for this command. Add a document of kind ${ALLOWED}. [CONFIG_EMPTY]`],
    ],
    [
      'comments only',
      '# nothing\n',
      [`f.yaml:1:1: the file contains no configuration for this command. Add a document of kind ${ALLOWED}. [CONFIG_EMPTY]`],
    ],
    [
      'a list',
      '- a\n',
      ['f.yaml:1:1: a configuration document must be an object. Start the document with apiVersion and kind. [CONFIG_WRONG_TYPE]'],
    ],
    [
      'an empty object',
      '{}\n',
      [
        'f.yaml:1:1 apiVersion: the document has no apiVersion. Add apiVersion: kubeadm.k8s.io/v1beta4. [CONFIG_MISSING_HEADER]',
        'f.yaml:1:1 kind: the document has no kind. Add the kind of the document, e.g. kind: InitConfiguration. [CONFIG_MISSING_HEADER]',
      ],
    ],
    [
      'no kind',
      'apiVersion: kubeadm.k8s.io/v1beta4\n',
      ['f.yaml:1:1 kind: the document has no kind. Add the kind of the document, e.g. kind: InitConfiguration. [CONFIG_MISSING_HEADER]'],
    ],
    [
      'an empty kind',
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ""\n',
      ['f.yaml:2:7 kind: the document has no kind. Add the kind of the document, e.g. kind: InitConfiguration. [CONFIG_MISSING_HEADER]'],
    ],
    [
      'an apiVersion that is a number',
      'apiVersion: 1\nkind: InitConfiguration\n',
      ['f.yaml:1:13 apiVersion: expected a string [CONFIG_WRONG_TYPE]'],
    ],
    [
      'an unknown kind',
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: Foo\n',
      [`f.yaml:2:7: unknown kind "Foo" in "kubeadm.k8s.io/v1beta4". Supported kinds: ${KINDS}. [CONFIG_UNKNOWN_KIND]`],
    ],
    [
      'a misspelled kind',
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfigration\n',
      ['f.yaml:2:7: unknown kind "JoinConfigration" in "kubeadm.k8s.io/v1beta4". Did you mean JoinConfiguration? [CONFIG_UNKNOWN_KIND]'],
    ],
    [
      'a kind in another case',
      'apiVersion: kubeadm.k8s.io/v1beta4\nkind: initconfiguration\n',
      ['f.yaml:2:7: unknown kind "initconfiguration" in "kubeadm.k8s.io/v1beta4". Did you mean InitConfiguration? [CONFIG_UNKNOWN_KIND]'],
    ],
    [
      'an unknown group',
      'apiVersion: foo/bar\nkind: zzz\n',
      [`f.yaml:2:7: unknown kind "zzz" in "foo/bar". Supported kinds: ${KINDS}. [CONFIG_UNKNOWN_KIND]`],
    ],
    [
      'the group of another kind',
      'apiVersion: v1\nkind: InitConfiguration\n',
      ['f.yaml:1:13: unknown version "v1". Use kubeadm.k8s.io/v1beta4 or kubeadm.k8s.io/v1beta3. [CONFIG_UNKNOWN_VERSION]'],
    ],
    [
      'an unknown version',
      'apiVersion: kubeadm.k8s.io/v1\nkind: InitConfiguration\n',
      ['f.yaml:1:13: unknown version "kubeadm.k8s.io/v1". Use kubeadm.k8s.io/v1beta4 or kubeadm.k8s.io/v1beta3. [CONFIG_UNKNOWN_VERSION]'],
    ],
    [
      'an unsupported version of the kubelet configuration',
      'apiVersion: kubelet.config.k8s.io/v1alpha1\nkind: KubeletConfiguration\n',
      ['f.yaml:1:13: unknown version "kubelet.config.k8s.io/v1alpha1". Use kubelet.config.k8s.io/v1beta1. [CONFIG_UNKNOWN_VERSION]'],
    ],
    [
      'a kind that does not exist in v1beta3',
      'apiVersion: kubeadm.k8s.io/v1beta3\nkind: ResetConfiguration\n',
      [
        'f.yaml:1:13: kind ResetConfiguration does not exist in kubeadm.k8s.io/v1beta3; v1beta4 is the first version with this kind. Use apiVersion: kubeadm.k8s.io/v1beta4. [CONFIG_UNKNOWN_KIND]',
      ],
    ],
    [
      'a kind declared twice, even in two versions',
      `${documentOf('init')}---\n${documentOf('init3')}`,
      ['f.yaml:5:7: duplicate InitConfiguration, first on line 2. Remove one of the two documents. [CONFIG_DUPLICATE_KIND]'],
    ],
    [
      'invalid YAML',
      'apiVersion: [\n',
      ['f.yaml:1:13: not valid YAML: the [ is not closed with ], or a line before the ] is not indented [CONFIG_SYNTAX]'],
    ],
  ])('rejects %s', (_, text, expected) => {
    expect(linesOf(load(text))).toEqual(expected);
  });

  it.each([
    ['v1alpha1', 'v1.11'],
    ['v1alpha2', 'v1.12'],
    ['v1alpha3', 'v1.14'],
    ['v1beta1', 'v1.15'],
    ['v1beta2', 'v1.22'],
  ])('names the kubeadm version that converts %s', (version, kubeadm) => {
    expect(linesOf(load(`apiVersion: kubeadm.k8s.io/${version}\nkind: InitConfiguration\n`))).toEqual([
      `f.yaml:1:13: kubeadm.k8s.io/${version} is no longer supported. Convert the file with kubeadm ${kubeadm}: kubeadm config migrate --old-config FILE --new-config FILE. [CONFIG_OLD_VERSION]`,
    ]);
  });

  it('warns about v1beta3 unless deprecated versions are allowed', () => {
    const warning =
      'warning: f.yaml:1:13: kubeadm.k8s.io/v1beta3 is deprecated and no longer supported from Kubernetes 1.37 on. Convert the file with kubeletadm config migrate --old-config FILE. [CONFIG_DEPRECATED_VERSION]';
    expect(linesOf(loadConfig(documentOf('init3'), 'f.yaml', { kinds: ['InitConfiguration'] }))).toEqual([warning]);
    expect(linesOf(loadConfig(documentOf('init3'), 'f.yaml', { kinds: ['InitConfiguration'], allowDeprecated: true }))).toEqual([]);
  });

  it('ignores documents of other commands without validating them', () => {
    const text = `${documentOf('cluster', 'foo: bar')}---\n${documentOf('reset')}`;
    const loaded = load(text, ['ResetConfiguration']);
    expect(loaded.cluster).toBeUndefined();
    expect(linesOf(loaded)).toEqual([
      'warning: f.yaml:2:7: ClusterConfiguration is ignored: this command reads ResetConfiguration [CONFIG_IGNORED_DOCUMENT]',
    ]);
  });

  it('rejects a file that contains only documents of other commands', () => {
    expect(linesOf(load(KUBELET, ['JoinConfiguration']))).toEqual([
      'f.yaml:1:1: the file contains no configuration for this command. Add a document of kind JoinConfiguration. [CONFIG_EMPTY]',
      'warning: f.yaml:2:7: KubeletConfiguration is ignored: this command reads JoinConfiguration [CONFIG_IGNORED_DOCUMENT]',
    ]);
  });

  it('reports the problems of all documents, in order', () => {
    const text = `${documentOf('cluster', 'clusterNam: a')}---\n${documentOf('init', 'dryRun: 1')}`;
    expect(linesOf(load(text))).toEqual([
      'f.yaml:3:1 clusterNam: unknown field. Did you mean clusterName? [CONFIG_UNKNOWN_FIELD]',
      'f.yaml:7:9 dryRun: expected true or false, found the number 1 [CONFIG_WRONG_TYPE]',
    ]);
  });
});
