import { describe, expect, it } from 'vitest';
import { appendHash, appendHashOf } from '../../../src/dynamic/signing/config-map-hash.ts';

const bytes = (...values: number[]) => new Uint8Array(values);
const HTML =
  '{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","evictionHard":{"memory.available":"<5%"},"x":"a&b>c"}';
const CTRL = Buffer.from([0x61, 8, 0x62, 12, 0x63, 0x7f, 0x64, 0xe2, 0x80, 0xa8, 0x65, 0xc3, 0xa9, 10]).toString('utf8');

describe('appendHash', () => {
  // Names printed by kubectl 1.27 to 1.36.
  it.each([
    [
      'my-node-config',
      { kubelet: 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 50\n' },
      {},
      'my-node-config-g2gfckm55t',
    ],
    ['my-node-config', { kubelet: 'hello' }, {}, 'my-node-config-gkdd4d9d6k'],
    ['html', { kubelet: HTML }, {}, 'html-k6bf2gkcmk'],
    ['mixed', { a: '1' }, { blob: bytes(0, 1, 0xff, 0xfe) }, 'mixed-ftgb2dfg67'],
    ['binonly', {}, { blob: bytes(0, 1, 0xff, 0xfe) }, 'binonly-4d8tk5bcbh'],
    ['multi', { two: '2', one: '', three: '3' }, {}, 'multi-m95km26fhh'],
    ['empty', {}, {}, 'empty-b6t642d2fb'],
    ['ctrl', { c: CTRL }, {}, 'ctrl-cctc8b8hb4'],
  ])('of %s equals kubectl’s', (name, data, binaryData, expected) => {
    expect(appendHash({ name, data, binaryData })).toBe(expected);
  });

  // Upstream's own table, without a name.
  it.each([
    ['no data', { data: {} }, '42745tchd9'],
    ['one key', { data: { one: '' } }, '9g67k2htb6'],
    ['three keys', { data: { two: '2', one: '', three: '3' } }, 'f5h7t85m9b'],
    ['null data', { data: null }, 'dk855m5d49'],
    ['one binary key', { data: null, binaryData: { one: bytes() } }, 'mk79584b8c'],
    ['text and binary', { data: { one: '' }, binaryData: { two: bytes() } }, '698h7c7t9m'],
  ])('of %s', (_, content, expected) => {
    expect(appendHashOf({ name: '', ...content })).toBe(expected);
  });

  it('includes immutable only if it is set', () => {
    expect(appendHash({ name: 'x', data: { a: 'b' }, immutable: true })).toBe('x-gd79m9k969');
    expect(appendHash({ name: 'x', data: { a: 'b' } })).not.toBe('x-gd79m9k969');
  });
});
