import type { ChartConfiguration } from 'chart.js';
import type { ChartData } from '../server-api';
import { clockTime } from '../live-table/values';

const NUMBER = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 4 });
const DAY_MS = 86_400_000;

export interface Colours {
  readonly accent: string;
  readonly text: string;
  readonly line: string;
}

/** A picture and the sentence that says the same. */
export interface Drawing {
  readonly title: string;
  readonly configuration: ChartConfiguration<'bar' | 'line'>;
}

/** The pictures of a column. */
export function drawings(data: ChartData, colours: Colours): Drawing[] {
  const { distribution, series, frequencies } = data;
  const found: Drawing[] = [];
  if (series.length > 1) found.push(seriesDrawing(data, colours));
  if (distribution !== null) {
    const width = (distribution.high - distribution.low) / distribution.counts.length;
    const labels = distribution.counts.map((_, bin) => NUMBER.format(distribution.low + bin * width));
    found.push(bars(`Distribution of ${data.column}`, labels, distribution.counts, colours));
  }
  if (frequencies.length) {
    const labels = frequencies.map(({ value }) => value ?? '(empty)');
    const counts = frequencies.map(({ rows }) => rows);
    found.push(bars(`Rows per ${data.column}`, labels, counts, colours));
  }
  return found;
}

function seriesDrawing({ column, series }: ChartData, colours: Colours): Drawing {
  const span = (series.at(-1)?.at ?? 0) - (series[0]?.at ?? 0);
  const labels = series.map(({ at }) => moment(new Date(at), span));
  const faint = { borderColor: 'transparent', pointRadius: 0, backgroundColor: `${colours.accent}33` };
  return {
    title: `${column} over time`,
    configuration: {
      type: 'line',
      data: {
        labels,
        datasets: [
          { ...faint, label: 'least', data: series.map(({ least }) => least), fill: '+1' },
          { ...faint, label: 'greatest', data: series.map(({ greatest }) => greatest) },
          {
            label: 'mean',
            data: series.map(({ mean }) => mean),
            borderColor: colours.accent,
            borderWidth: 2,
            pointRadius: 0,
          },
        ],
      },
      options: options(colours),
    },
  };
}

function bars(title: string, labels: string[], counts: readonly number[], colours: Colours): Drawing {
  return {
    title,
    configuration: {
      type: 'bar',
      data: { labels, datasets: [{ label: 'rows', data: [...counts], backgroundColor: colours.accent }] },
      options: options(colours),
    },
  };
}

function options({ text, line }: Colours): NonNullable<ChartConfiguration<'bar' | 'line'>['options']> {
  const scale = { ticks: { color: text, maxTicksLimit: 8 }, grid: { color: line } };
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: 'index', intersect: false },
    plugins: { legend: { display: false } },
    scales: { x: scale, y: scale },
  };
}

function moment(date: Date, span: number): string {
  return span < DAY_MS ? clockTime(date) : date.toLocaleDateString();
}
