import { pretty } from './pretty';

describe('pretty', () => {
  it('gives every field of an object a line', () => {
    expect(pretty('{"a":1,"b":[2]}')).toBe('{\n  "a": 1,\n  "b": [\n    2\n  ]\n}');
  });

  it.each(['plain', '{"cut', '42', '{"id":12345678901234567890}'])('leaves %s as it is', (text) => {
    expect(pretty(text)).toBe(text);
  });
});
