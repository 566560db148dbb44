import { describe, expect, it } from 'vitest';
import { type AppError, formatProblem } from '../../../src/base/errors.ts';
import type { TreeFile } from '../../../src/base/local-files.ts';
import { KUBELET_PATCH_SCHEMA } from '../../../src/codec/patch-schema.ts';
import { applyPlannedPatches, type PatchFileName, parsePatchFileName, planPatches } from '../../../src/kubelet/layers/patch-files.ts';

const EXTENSION = { ignored: 'the file extension must be one of [json yaml]' };
const TARGET = {
  ignored:
    'unknown target, must be one of [etcd kube-apiserver kube-controller-manager kube-scheduler kubeletconfiguration corednsdeployment kubeproxydaemonset]',
};
const TYPE = { problem: "unknown or missing patch type after '+', must be one of [json merge strategic]" };

describe('parsePatchFileName', () => {
  it.each<[string, PatchFileName]>([
    ['kubeletconfiguration.yaml', { target: 'kubeletconfiguration', type: 'strategic' }],
    ['kubeletconfiguration.json', { target: 'kubeletconfiguration', type: 'strategic' }],
    ['kubeletconfiguration0+json.yaml', { target: 'kubeletconfiguration', type: 'json' }],
    ['kubeletconfiguration-10+merge.json', { target: 'kubeletconfiguration', type: 'merge' }],
    ['kube-apiserver+strategic.yaml', { target: 'kube-apiserver', type: 'strategic' }],
    ['etcd.yaml', { target: 'etcd', type: 'strategic' }],
    ['corednsdeployment+merge.yaml', { target: 'corednsdeployment', type: 'merge' }],
    ['kubeproxydaemonset0.json', { target: 'kubeproxydaemonset', type: 'strategic' }],
    ['kubeletconfigurationjson.yaml', { target: 'kubeletconfiguration', type: 'strategic' }],
    ['kubeletconfiguration+jsonx.yaml', { target: 'kubeletconfiguration', type: 'json' }],
    ['kubeletconfiguration.10+json.yaml', { target: 'kubeletconfiguration', type: 'strategic' }],
    ['kubeletconfiguration+.yaml', TYPE],
    ['kubeletconfiguration+foo.yaml', TYPE],
    ['kubeletconfiguration.yml', EXTENSION],
    ['kubeletconfiguration.YAML', EXTENSION],
    ['kubeletconfiguration', EXTENSION],
    ['.yaml', EXTENSION],
    ['README.md', EXTENSION],
    ['KubeletConfiguration.yaml', TARGET],
    ['foo.yaml', TARGET],
  ])('%s', (name, expected) => {
    expect(parsePatchFileName(name)).toEqual(expected);
  });
});

describe('planPatches', () => {
  const plan = (files: Readonly<Record<string, string>>) =>
    planPatches(Object.entries(files).map(([path, text]): TreeFile => ({ path, text })));

  it('reads files in lexical order, directory by directory', () => {
    const names = [
      'kubeletconfiguration9.yaml',
      'kubeletconfiguration.yaml',
      'kubeletconfiguration/etcd.yaml',
      'b/etcd.yaml',
      'kubeletconfiguration10.yaml',
      'kubeletconfiguration-x.yaml',
    ];
    const { used } = plan(Object.fromEntries(names.map((name) => [name, 'a: 1\n'])));
    expect(used).toEqual([
      'b/etcd.yaml',
      'kubeletconfiguration/etcd.yaml',
      'kubeletconfiguration-x.yaml',
      'kubeletconfiguration.yaml',
      'kubeletconfiguration10.yaml',
      'kubeletconfiguration9.yaml',
    ]);
  });

  it('reads each document as a patch', () => {
    const { patches, problems } = plan({
      'kubeletconfiguration+json.yaml': '---\n- op: add\n---  # second\n\n---\n- op: remove\r\n',
      'etcd.yaml': '{"a": 1}',
    });
    expect(problems).toEqual([]);
    expect(patches).toEqual([
      { target: 'etcd', type: 'strategic', patch: { a: 1 }, source: 'etcd.yaml' },
      { target: 'kubeletconfiguration', type: 'json', patch: [{ op: 'add' }], source: 'kubeletconfiguration+json.yaml (1)' },
      { target: 'kubeletconfiguration', type: 'json', patch: [{ op: 'remove' }], source: 'kubeletconfiguration+json.yaml (2)' },
    ]);
  });

  it('reads a document of comments as null, which only a merge patch refuses', () => {
    expect(plan({ 'etcd.yaml': '# nothing\n' }).patches.map(({ patch }) => patch)).toEqual([null]);
  });

  it('reports ignored files', () => {
    const { patches, used, ignored, problems } = plan({
      'etcd.yaml': '',
      'notes.txt': 'x',
      'foo.yaml': 'a: 1',
      'kubeletconfiguration.yaml': ' \n',
    });
    expect(patches).toEqual([]);
    expect(used).toEqual(['kubeletconfiguration.yaml']);
    expect(problems).toEqual([]);
    expect(ignored).toEqual([
      { path: 'etcd.yaml', reason: 'the file is empty' },
      { path: 'foo.yaml', reason: TARGET.ignored },
      { path: 'notes.txt', reason: EXTENSION.ignored },
    ]);
  });

  it('reports all errors at once, with their positions', () => {
    const { problems } = plan({
      'etcd+foo.yaml': 'a: 1',
      'kube-apiserver.yaml': 'a: 1\n--- b: 2\nc: 3\n---\nd: [\n',
      'kubeletconfiguration.yaml': 'a: 1\n---\nb:\n  c: .nan\n',
      'kubeletconfiguration.x+json.yaml': 'a: 1\n',
    });
    expect(problems.map(formatProblem)).toEqual([
      "etcd+foo.yaml:1:1: unknown or missing patch type after '+', must be one of [json merge strategic] [PATCH_FILE_TYPE]",
      'kube-apiserver.yaml:2:1: text after the document separator ---: "b: 2". Move the text to a new line. [PATCH_FILE_SEPARATOR]',
      expect.stringMatching(/^kube-apiserver\.yaml:[56]:\d+: not valid YAML: .*\[CONFIG_SYNTAX\]$/),
      'kubeletconfiguration.x+json.yaml:1:1: the patch type after the first dot is ignored: the file is applied as a strategic merge patch. Put the type before the first dot, as in kubeletconfiguration0+json.yaml. [PATCH_FILE_NAME]',
      expect.stringMatching(/^kubeletconfiguration\.yaml:4:6: not valid YAML: .*\[CONFIG_SYNTAX\]$/),
    ]);
    expect(problems.filter(({ severity }) => severity === 'warning')).toHaveLength(1);
  });
});

describe('applyPlannedPatches', () => {
  const options = { target: 'kubeletconfiguration', schema: KUBELET_PATCH_SCHEMA } as const;

  it('applies those for the target, in order', () => {
    const { patches } = planPatches([
      {
        path: 'kubeletconfiguration1+json.yaml',
        text: '- {op: replace, path: /clusterDomain, value: c}\n- {op: add, path: /podsPerCore, value: 10}\n',
      },
      { path: 'kubeletconfiguration0.yaml', text: 'clusterDomain: b\nmaxPods: 64\nevictionHard:\n  memory.available: 100Mi\n' },
      { path: 'etcd.yaml', text: 'spec: {}\n' },
    ]);
    expect(applyPlannedPatches({ clusterDomain: 'a' }, patches, options)).toEqual({
      clusterDomain: 'c',
      maxPods: 64,
      evictionHard: { 'memory.available': '100Mi' },
      podsPerCore: 10,
    });
  });

  it('names the patch that cannot be applied', () => {
    const { patches } = planPatches([{ path: 'kubeletconfiguration+merge.yaml', text: 'a: 1\n---\n[]\n' }]);
    const run = () => applyPlannedPatches({}, patches, options);
    expect(run).toThrow('patch kubeletconfiguration+merge.yaml (2): a merge patch must be an object, not a list [PATCH_INVALID]');
    try {
      run();
    } catch (error) {
      expect((error as AppError).exitCode).toBe(2);
    }
  });
});
