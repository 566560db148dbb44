import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/text/secret.ts';
import { renderTemplate, type Templates } from '../../../src/codec/render-template.ts';
import { parseSource, sourceToJson } from '../../../src/codec/source.ts';

const TEMPLATES: Templates = new Map([
  [
    'etc/x.conf',
    (context, { helpers }) => {
      const { name, users } = context as Readonly<Record<string, unknown>>;
      return `name: ${helpers.yaml?.(name)}\nusers:\n${helpers.yaml?.(users)}\n`;
    },
  ],
]);

/** The rendered file, parsed. */
function rendered(name: string, users: unknown): unknown {
  const text = renderTemplate(TEMPLATES, '/etc/x.conf', { name, users });
  const { documents, problems } = parseSource(typeof text === 'string' ? text : text.reveal(), 'x.conf');
  expect(problems).toEqual([]);
  const root = documents[0]?.root ?? null;
  return root === null ? null : sourceToJson(root);
}

describe('a rendered YAML file', () => {
  it.each(['⟦0⟧', '⟦', '⟦⟦1⟧', 'two\nlines', `${'a long name '.repeat(12)}`, '{', 'true'])('keeps the name %j', (name) => {
    expect(
      rendered(name, [
        { name, token: new Secret('abcdef.0123456789abcdef') },
        { name: 'b', token: new Secret('x⟦1⟧') },
      ]),
    ).toEqual({
      name,
      users: [
        { name, token: 'abcdef.0123456789abcdef' },
        { name: 'b', token: 'x⟦1⟧' },
      ],
    });
  });
});
