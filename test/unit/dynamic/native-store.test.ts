import { describe, expect, it } from 'vitest';
import {
  hasSafeStorePath,
  nativeCheckpointDirectory,
  nativeStorePaths,
  parseMetaFile,
  renderMetaFile,
} from '../../../src/dynamic/native/native-store.ts';

const IDENTITY = {
  namespace: 'kube-system',
  name: 'my-node-config-gkdd4d9d6k',
  uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
  resourceVersion: '1326',
  kubeletConfigKey: 'kubelet',
};
// Written by a 1.21 kubelet.
const WRITTEN = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: SerializedNodeConfigSource
source:
  configMap:
    kubeletConfigKey: kubelet
    name: my-node-config-gkdd4d9d6k
    namespace: kube-system
    resourceVersion: "1326"
    uid: 705ab4f5-6393-11e8-b7cc-42010a800002
`;

describe('meta files', () => {
  it('are byte-for-byte identical to the kubelet’s', () => {
    expect(renderMetaFile(IDENTITY)).toBe(WRITTEN);
    expect(parseMetaFile(WRITTEN)).toEqual({ kind: 'source', identity: IDENTITY });
    expect([renderMetaFile(null), parseMetaFile('')]).toEqual(['', { kind: 'local' }]);
  });

  it('quote strings that YAML would read as another type', () => {
    const odd = { ...IDENTITY, name: 'n', kubeletConfigKey: 'on', uid: '123' };
    expect(renderMetaFile(odd)).toContain('kubeletConfigKey: "on"\n    name: "n"\n');
    expect(parseMetaFile(renderMetaFile(odd))).toEqual({ kind: 'source', identity: odd });
  });

  it.each([
    ['garbage', 'not: [a'],
    ['one word', 'x'],
    ['another kind', WRITTEN.replace('SerializedNodeConfigSource', 'Bogus')],
    ['no header', WRITTEN.split('\n').slice(2).join('\n')],
    ['no source', WRITTEN.split('\n').slice(0, 2).join('\n')],
    ['a number for a string', WRITTEN.replace('"1326"', '1326')],
    ['a boolean for a string', WRITTEN.replace('my-node-config-gkdd4d9d6k', 'y')],
  ])('%s is corrupt', (_, text) => {
    expect(parseMetaFile(text)).toMatchObject({ kind: 'corrupt' });
  });

  it('may have unknown members, and lack members', () => {
    expect(parseMetaFile(`${WRITTEN}extra: 1\n`)).toMatchObject({ kind: 'source' });
    expect(parseMetaFile(WRITTEN.replace(/ {4}uid.*\n/, ''))).toEqual({ kind: 'source', identity: { ...IDENTITY, uid: '' } });
  });
});

it('paths are in store/ below the directory of the flag', () => {
  expect(nativeStorePaths('/var/lib/kubelet/dynamic/').assigned).toBe('/var/lib/kubelet/dynamic/store/meta/assigned');
  expect(nativeCheckpointDirectory('/d', IDENTITY)).toBe('/d/store/checkpoints/705ab4f5-6393-11e8-b7cc-42010a800002/1326');
});

it('detects an identity whose path leaves the store', () => {
  expect(hasSafeStorePath(IDENTITY)).toBe(true);
  for (const uid of ['..', '../x', '', 'a/b']) expect(hasSafeStorePath({ ...IDENTITY, uid })).toBe(false);
});
