import { describe, expect, it } from 'vitest';
import { pageFlags } from '../../../src/cli/page-options.ts';

describe('--serve', () => {
  it.each([
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['8080', '127.0.0.1', 8080],
    [':8080', '127.0.0.1', 8080],
    ['10.0.0.5', '10.0.0.5', 0],
    ['0.0.0.0:8080', '0.0.0.0', 8080],
    ['[::1]:8080', '::1', 8080],
    ['[::]', '::', 0],
    ['localhost:8080', 'localhost', 8080],
  ])('%s is an address', (text, host, port) => {
    expect(pageFlags({ serve: text }).serve).toEqual({ host, port });
  });

  it.each(['', 'plan.json:x', '1.2.3.4:70000', '::1', 'http://x:1', 'a b', '[::1'])('%j is refused', (text) => {
    expect(() => pageFlags({ serve: text })).toThrow('is not an address and port');
  });

  it('is absent without the option', () => {
    expect(pageFlags({})).toEqual({ report: undefined, serve: undefined });
  });
});
