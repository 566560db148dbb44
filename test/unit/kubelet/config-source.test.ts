import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/base/json.ts';
import { CONFIG_ERRORS, findConfigError } from '../../../src/dynamic/error-texts.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  describeIdentity,
  describeSource,
  formatConfigSource,
  formatConfigStatus,
  formatSourceAnnotation,
  isConfigMapKey,
  LOCAL_STATUS,
  parseConfigSource,
  parseConfigStatus,
  parseSourceAnnotation,
  parseSourceArgument,
  parseStatusAnnotation,
  sameIdentity,
  sameSource,
} from '../../../src/kubelet/layers/config-source.ts';

const SOURCE = { namespace: 'kube-system', name: 'a', kubeletConfigKey: 'kubelet' };
const IDENTITY = { ...SOURCE, uid: 'u', resourceVersion: '7' };

describe('parseConfigSource', () => {
  it('parses valid sources, and formats them unchanged', () => {
    expect(parseConfigSource({ configMap: SOURCE })).toEqual({ source: SOURCE, issue: null });
    expect(formatConfigSource(SOURCE)).toEqual({ configMap: SOURCE });
    expect(parseConfigSource(undefined)).toEqual({ source: null, issue: null });
    expect(parseConfigSource(null)).toEqual({ source: null, issue: null });
  });

  const map = (change: Json) => ({ configMap: { ...SOURCE, ...(change as object) } }) as Json;
  it.each([
    [{}, 'must have exactly one member, configMap'],
    [map({ namespace: '' }), 'configMap.namespace must be set'],
    [map({ name: '' }), 'configMap.name must be set'],
    [map({ kubeletConfigKey: 5 }), 'configMap.kubeletConfigKey must be set'],
    [map({ uid: 'u' }), 'configMap.uid must not be set'],
    [map({ resourceVersion: '1' }), 'configMap.resourceVersion must not be set'],
    [map({ namespace: '../baz' }), 'configMap.namespace: "../baz" is not a valid namespace name'],
    [map({ name: '../bar' }), 'configMap.name: "../bar" is not a valid ConfigMap name'],
    [map({ kubeletConfigKey: '../qux' }), 'configMap.kubeletConfigKey: "../qux" is not a valid ConfigMap key'],
  ])('refuses %j', (value, issue) => {
    expect(parseConfigSource(value)).toEqual({ source: null, issue });
  });
});

describe('isConfigMapKey', () => {
  it.each(['kubelet', '.hidden', 'a..b', 'A_-9', 'k'.repeat(253)])('accepts %s', (key) => expect(isConfigMapKey(key)).toBe(true));
  it.each(['', '.', '..', '..a', 'a/b', '/a', 'k'.repeat(254), 'é'])('refuses %s', (key) => expect(isConfigMapKey(key)).toBe(false));
});

describe('annotations', () => {
  it('contain the fields as JSON', () => {
    expect(CONFIG_SOURCE_ANNOTATION).toBe('kubeletadm.dev/config-source');
    expect(formatSourceAnnotation(SOURCE)).toBe('{"configMap":{"kubeletConfigKey":"kubelet","name":"a","namespace":"kube-system"}}');
    expect(parseSourceAnnotation(formatSourceAnnotation(SOURCE)).source).toEqual(SOURCE);
    expect(parseSourceAnnotation('{')).toEqual({ source: null, issue: 'not valid JSON' });
    expect(parseSourceAnnotation(' ')).toEqual({ source: null, issue: null });
    expect(parseStatusAnnotation(JSON.stringify(formatConfigStatus(LOCAL_STATUS)))).toEqual(LOCAL_STATUS);
    expect(parseStatusAnnotation('[')).toBeNull();
  });
});

describe('parseSourceArgument', () => {
  it('has the default key kubelet', () => {
    expect(parseSourceArgument('kube-system/a').source).toEqual(SOURCE);
    expect(parseSourceArgument('kube-system/a/other').source).toEqual({ ...SOURCE, kubeletConfigKey: 'other' });
    expect(describeSource(SOURCE)).toBe('kube-system/a/kubelet');
    expect(describeIdentity(IDENTITY)).toBe('kube-system/a/kubelet@7');
  });
  it.each(['a', 'a/b/c/d', '/b', 'a/', 'a/b/', 'A/b', 'a/B', 'a/b/..'])('refuses %s', (text) => {
    expect(parseSourceArgument(text).issue).not.toBeNull();
  });
});

describe('parseConfigStatus', () => {
  it("parses the kubelet's status, and formats it unchanged", () => {
    const written = { active: { configMap: IDENTITY }, assigned: { configMap: { ...IDENTITY, name: 'b' } }, error: 'no' };
    const status = parseConfigStatus(written);
    expect(status).toEqual({ active: IDENTITY, assigned: { ...IDENTITY, name: 'b' }, lastKnownGood: null, error: 'no' });
    expect(formatConfigStatus(status ?? LOCAL_STATUS)).toEqual(written);
  });
  it('distinguishes a local status from a missing one', () => {
    expect(parseConfigStatus({})).toEqual(LOCAL_STATUS);
    expect(parseConfigStatus(undefined)).toBeNull();
    expect(formatConfigStatus(LOCAL_STATUS)).toEqual({});
  });
});

it('compares like the kubelet', () => {
  expect(sameSource(SOURCE, IDENTITY)).toBe(true);
  expect(sameIdentity(IDENTITY, { ...IDENTITY })).toBe(true);
  expect(sameIdentity(IDENTITY, { ...IDENTITY, resourceVersion: '8' })).toBe(false);
  expect(sameIdentity(null, null)).toBe(true);
  expect(sameIdentity(IDENTITY, null)).toBe(false);
});

describe('findConfigError', () => {
  it.each(Object.values(CONFIG_ERRORS))('knows $code', (error) => {
    expect(findConfigError(error.text)).toBe(error);
  });
  it('finds messages without the prefix, but no unknown ones', () => {
    expect(findConfigError('failed to download config, see Kubelet log for details')).toBe(CONFIG_ERRORS.DOWNLOAD_FAILED);
    expect(findConfigError('internal failure, see Kubelet log for details')).toBe(CONFIG_ERRORS.INTERNAL_FAILURE);
    expect(findConfigError('something else')).toBeNull();
  });
});
