import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTemplate } from '../../../src/fleet/file/scope.ts';

describe('parseTemplate', () => {
  it.each<[string, unknown]>([
    ['plain', { parts: ['plain'] }],
    ['{{ a }}', { parts: [{ variable: 'a' }] }],
    ['{{a}}-{{ b_1 }}.x', { parts: [{ variable: 'a' }, '-', { variable: 'b_1' }, '.x'] }],
    ['{{ "{{" }}x{{ \'}}\' }}', { parts: ['{{', 'x', '}}'] }],
    ['{{ a', { fault: 'contains {{ without a closing }}, or more than one name between the braces' }],
    ['{{ a | lower }}', { fault: 'contains more than the name of a variable between {{ and }}' }],
    ['{{ a.b }}', { fault: 'contains more than the name of a variable between {{ and }}' }],
    ['{{ }}', { fault: 'has an empty {{ }}' }],
    ['{{{ a }}}', { fault: 'contains {{ without a closing }}, or more than one name between the braces' }],
    ['a }} b', { parts: ['a }} b'] }],
  ])('%s', (text, expected) => {
    expect(parseTemplate(text)).toEqual(expected);
  });

  it('finishes in linear time for any text', () => {
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom('{', '}', '"', "'", 'a', ' ', '|') }), (text) => void parseTemplate(text)));
    const started = process.cpuUsage().user;
    parseTemplate('{{ '.repeat(100_000));
    parseTemplate(`{{ ${'a'.repeat(300_000)}`);
    expect(process.cpuUsage().user - started).toBeLessThan(10_000_000);
  });
});
